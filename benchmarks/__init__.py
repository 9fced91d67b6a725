"""Measurements, one in each file, whose docstring says how to run it and what it prints."""
