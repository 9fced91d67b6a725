"""Restrict a process for good, before it reads a student's first byte.

Standard library only. A cold worker and a child of the zygote both do this right after they start.
"""

from autograder.worker.confinement.orders import Orders
from autograder.worker.confinement.self_confinement import confine

__all__ = ["Orders", "confine"]
