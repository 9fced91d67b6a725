"""What a process does to itself before it reads a student's first byte: afterwards there is no way back.

Standard library only. Cold starts import it as their first act; the zygote's children, right after the fork.
"""

from autograder.worker.confinement.orders import Orders
from autograder.worker.confinement.self_confinement import confine

__all__ = ["Orders", "confine"]
