"""Restrict a process for good, before it reads a student's first byte.

Standard library only. The children of a zygote do this right after the fork.
"""

from autograder.worker.confinement.orders import Orders
from autograder.worker.confinement.self_confinement import confine

__all__ = ["Orders", "confine"]
