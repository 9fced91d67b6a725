"""Measurements, one in each file that takes `--quick`; the other files are parts of them, or commands."""
