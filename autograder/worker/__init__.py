"""UNTRUSTED once student code is loaded: runs an answer and sends back bytes or a graph, never a verdict."""
