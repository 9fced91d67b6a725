"""Kinds of answers, one a file, each with the checks that are made for it."""
