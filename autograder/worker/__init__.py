"""UNTRUSTED after student code is loaded: runs an answer and returns bytes or a graph, never a verdict."""
