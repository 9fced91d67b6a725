"""Exercises of lesson 01: a Transformer layer from its parts."""
