"""The one error of this package."""

from __future__ import annotations


class SandboxError(Exception):
    """The sandbox cannot be had: one sentence for the person at the keyboard, never the student's fault."""

    exit_code = 4  # of a command that ends with it
