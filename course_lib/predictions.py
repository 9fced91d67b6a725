"""Write a prediction down before a cell runs, and compare it with what was measured.

    predict("peak", ...)                     # the student puts a number, or one of the words, for the three dots
    ...
    reveal("peak", measured, "Scores grow with the square of the length.")

Nothing is graded: a prediction that was wrong shows where to look.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType

from course_lib.show import Table

Value = bool | int | float | str
WITHIN = 0.1  # of the truth; a number that is as near is right


@dataclass(frozen=True)
class _Outcome:
    guess: Value | None
    truth: Value
    is_right: bool

    def cells(self) -> tuple[str, str, str]:
        """Return the guess, the truth, and whether they agree; two of them are empty where nothing was guessed."""
        if self.guess is None:
            return "", _text(self.truth), ""
        return _text(self.guess), _text(self.truth), "yes" if self.is_right else "no"


_guesses: dict[str, Value | None] = {}
_outcomes: dict[str, _Outcome] = {}


def predict(name: str, guess: Value | EllipsisType, *, choices: Sequence[Value] = ()) -> None:
    """Keep a guess under a name until `reveal` compares it; three dots are no guess yet.

    Raises ValueError if `choices` are given and the guess is none of them.
    """
    if isinstance(guess, EllipsisType):
        _guesses[name] = None
        return
    if choices and _plain(guess) not in [_plain(choice) for choice in choices]:
        offered = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"The prediction {name!r} is {guess!r}. Choose one of {offered}.")
    _guesses[name] = guess


def reveal(name: str, truth: Value, reason: str, *, within: float = WITHIN) -> None:
    """Print what was predicted under a name, what is true, and one sentence that tells why.

    A number is right if it differs from the truth by at most `within` of it, a word if it is the same word. Raises
    KeyError if nothing was predicted under this name.

        >>> predict("factor", 4)
        >>> reveal("factor", 16, "There is a score for each pair of tokens.")
        You predicted 4; it is 16. There is a score for each pair of tokens.
        >>> predict("factor", 16)
        >>> reveal("factor", 16, "There is a score for each pair of tokens.")
        You predicted 16, and it is 16. There is a score for each pair of tokens.
        >>> predict("on a CPU", "raises")
        >>> reveal("on a CPU", "runs eager", "There is nothing to capture.")
        You predicted "raises"; it is "runs eager". There is nothing to capture.
    """
    if name not in _guesses:
        raise KeyError(f"Nothing was predicted as {name!r}. Run the line `predict({name!r}, ...)` first.")
    guess = _guesses[name]
    is_right = guess is not None and _is_right(guess, truth, within)
    _outcomes[name] = _Outcome(guess, truth, is_right)
    if guess is None:
        print(f"It is {_quoted(truth)}. {reason}")
    else:
        joined = ", and" if is_right else ";"
        print(f"You predicted {_quoted(guess)}{joined} it is {_quoted(truth)}. {reason}")


def predictions() -> Table:
    """Return a table of all that was predicted and revealed since Python started."""
    rows = [(name, *outcome.cells()) for name, outcome in _outcomes.items()]
    right, made = sum(outcome.is_right for outcome in _outcomes.values()), sum(bool(row[3]) for row in rows)
    caption = f"{right} of {made} were right" if made else "no prediction was made"
    return Table(("prediction", "yours", "measured", "right"), tuple(rows), caption=caption)


def _is_right(guess: Value, truth: Value, within: float) -> bool:
    if isinstance(guess, (bool, str)) or isinstance(truth, (bool, str)):
        return _plain(guess) == _plain(truth)
    return abs(guess - truth) <= within * abs(truth)


def _plain(value: Value) -> Value:
    return value.strip().casefold() if isinstance(value, str) else value


def _quoted(value: Value) -> str:
    """Return a value for the middle of a sentence, where a word stands in quotation marks."""
    return f'"{value}"' if isinstance(value, str) else _text(value)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
