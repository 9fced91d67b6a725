"""The autograder: `host` judges, `worker` runs student code, `protocol` is all they share, `practice` is the student's view.

This file imports nothing, so that starting the worker never loads the host.
"""
