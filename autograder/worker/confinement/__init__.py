"""What a process does to itself before it reads a student's first byte: afterwards there is no way back.

Standard library and `autograder.protocol` only. Cold starts import it as their first act; the zygote's children, right
after the fork.
"""

from autograder.worker.confinement.confine import confine

__all__ = ["confine"]
