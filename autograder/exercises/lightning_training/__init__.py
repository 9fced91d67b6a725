"""Exercises of lesson 16: training with Lightning."""
