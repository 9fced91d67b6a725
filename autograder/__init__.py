"""The autograder: `host` judges, `worker` runs student code, `protocol` is all they share, `practice` is for students.

This file imports nothing, so that starting the worker never loads the host.
"""
