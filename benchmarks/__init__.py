"""Measurements: each file is one, and says in its docstring how to run it and what it prints."""
