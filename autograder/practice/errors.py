"""Exceptions for wrong calls of `check`, with messages of one sentence; a notebook shows them without a traceback."""


class PracticeError(Exception):
    """`check` or `progress` was called wrongly; the message says what to do instead."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows instead of a traceback, which would hold only lines of the grader."""
        return [f"{type(self).__name__}: {self}"]


class UnknownExerciseError(PracticeError):
    """No exercise has this id."""


class NoSourceError(PracticeError):
    """The text of the answer cell cannot be found, so there is nothing to give to the grader."""


class NotGradableError(PracticeError):
    """The answer's cell holds something that runs in a notebook only, and would fail in the grader."""


class WrongSettingsError(PracticeError):
    """A setting in course.toml is wrong, or names a device that is not there."""


class NotForGradingError(PracticeError):
    """nbgrader called `check` while it executed the notebook, and would use the result as marks."""
