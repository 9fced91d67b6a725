"""Exercises of lesson 11: custom operators, and passes inside Inductor."""
