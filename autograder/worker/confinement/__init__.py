"""Restrict a process for good, before it reads a student's first byte.

It imports the standard library and `autograder.protocol` only. The children of a zygote do this right after the fork.
"""

from autograder.worker.confinement.self_confinement import confine

__all__ = ["confine"]
