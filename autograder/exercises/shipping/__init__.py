"""Exercises of lesson 14: shipping programs."""
