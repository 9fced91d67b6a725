"""Grade answers that analyse programs.

The worker builds a program from the host's source text and passes it to the answer. The answer describes the program
as plain data. The host builds the same program and computes the expected description.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds import analysis_programs
from autograder.host.kinds.differences import contrasted, same
from autograder.host.point_shares import share_among
from autograder.host.session import Session
from autograder.protocol import Json
from autograder.protocol.requests.answers import Analyse


@dataclass(frozen=True)
class Asked:
    """One program: the function of `analysis_programs` that makes it, the arguments, and a name for messages."""

    make: str
    arguments: Mapping[str, Any]
    name: str  # completes "For ..."


class AnalysisAnswer:
    """Ask the student's function about one program at a time."""

    def __init__(self, student: Session) -> None:
        self._student = student

    def ask(self, asked: Asked) -> Json:
        """Return the function's result as plain data; a graph becomes rows of name, op, target and names of inputs."""
        text = inspect.getsource(analysis_programs)
        reply, _ = self._student.call(Analyse(text, asked.make, dict(asked.arguments)))
        return reply.body.value


@dataclass(frozen=True)
class Belief:
    """A wrong analysis of a program, and the message for a student whose answer equals it."""

    sees: Callable[..., Any]
    says: str


def sees(
    truth: Callable[..., Any], programs: Callable[[Draw], Sequence[Asked]], beliefs: Sequence[Belief] = ()
) -> Callable[[AnalysisAnswer, Draw], None]:
    """Return a check that the answer and `truth` agree on every program; the programs share its points equally.

    `truth` and the functions in `beliefs` are called with the values that the program's maker returns.
    """

    def run(answer: AnalysisAnswer, draw: Draw) -> None:
        share_among(programs(draw), lambda asked: _require_seen(answer, asked, truth, beliefs))

    return run


def _require_seen(answer: AnalysisAnswer, asked: Asked, truth: Callable[..., Any], beliefs: Sequence[Belief]) -> None:
    found, expected = answer.ask(asked), truth(*_made(asked))
    if not same(found, expected):
        said = next((b.says for b in beliefs if same(found, b.sees(*_made(asked)))), "")
        raise CheckFailedError(f"For {asked.name}: {said or difference(found, expected)}")


def _made(asked: Asked) -> tuple[Any, ...]:
    made: tuple[Any, ...] = getattr(analysis_programs, asked.make)(**asked.arguments)
    return made


def difference(found: Any, expected: Any) -> str:
    """Return a sentence about the first difference of the two."""
    if isinstance(found, dict) and isinstance(expected, dict):
        missing, extra = [k for k in expected if k not in found], [k for k in found if k not in expected]
        told = [f"{', '.join(missing[:3])} is missing"] if missing else []
        told += [f"{', '.join(extra[:3])} does not belong there"] if extra else []
        if told:
            return f"{' and '.join(told)}."
        key = next(key for key in expected if not same(found[key], expected[key]))
        return f"{key} is {contrasted(found[key], expected[key])}."
    if isinstance(found, str) and isinstance(expected, str):
        lines = zip([*found.splitlines(), ""], [*expected.splitlines(), ""], strict=False)
        at, (mine, right) = next((i, pair) for i, pair in enumerate(lines, 1) if pair[0] != pair[1] or not all(pair))
        return f"line {at} is {contrasted(mine, right)}."
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        at = next(i for i, pair in enumerate(zip(found, expected, strict=True)) if not same(*pair))
        return f"entry {at} is {contrasted(found[at], expected[at])}."
    return f"the result is {contrasted(found, expected)}."
