"""Exercises of lesson 00: the machine, the grader, a program as a table."""
