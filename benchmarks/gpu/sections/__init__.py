"""Sections of the GPU check, one in each file."""
