"""Measured speed: two sides of a contest, timed with the clock of the host, and the verdict."""
