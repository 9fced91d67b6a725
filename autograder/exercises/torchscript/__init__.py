"""Exercises of lesson 03: trace and script."""
