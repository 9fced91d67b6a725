"""Exercises of lesson 15: what a launch costs, and graphs of launches that are captured and replayed."""
