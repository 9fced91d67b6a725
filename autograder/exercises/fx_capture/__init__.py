"""Exercises of lesson 04: from a program to a graph with torch.fx."""
