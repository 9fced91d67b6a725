"""Exercises of lesson 16: Lightning, compiled, profiled and counted."""
