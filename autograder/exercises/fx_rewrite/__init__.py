"""Exercises of lesson 05: change a graph and fuse operators."""
