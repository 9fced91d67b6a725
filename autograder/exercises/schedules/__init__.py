"""Exercises of lesson 06: schedules written beside the model."""
