"""UNTRUSTED once student code is loaded: runs an answer on inputs from the host and sends back bytes or a graph,
never a verdict.
"""
