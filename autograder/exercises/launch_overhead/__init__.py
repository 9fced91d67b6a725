"""Exercises of lesson 15: launch overhead and capture."""
