"""Exercises of lesson 14: programs that leave Python."""
