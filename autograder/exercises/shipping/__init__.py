"""Exercises of lesson 14: exported programs, their symbols, their repair, and what passes change in them."""
