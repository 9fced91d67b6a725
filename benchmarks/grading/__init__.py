"""Measurements of the grader: attacks, classes, checks, pages and what isolation costs."""
