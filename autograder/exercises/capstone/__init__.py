"""Exercises of lesson 17: a baseline, a cheaper training step, its work log, and a review."""
