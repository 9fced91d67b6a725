"""Exercises of lesson 17: the work of the whole course on one training step, and a review."""
