"""Grade answers that analyse programs.

The worker builds a program from the host's source text and passes it to the answer. The answer describes the program
as plain data. The host builds the same program and computes the expected description.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds import analysis_programs
from autograder.host.kinds.differences import contrasted, same
from autograder.host.kinds.graph import GraphAnswer, read_graph
from autograder.host.kinds.reports import entries
from autograder.host.point_shares import share_among
from autograder.host.session import Session
from autograder.protocol import Json, Result
from autograder.protocol.requests.answers import Analyse, Employ, WrittenGraph
from autograder.protocol.requests.loads import LoadAnswer

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def graph_in_report(found: Any, told: str, *, max_nodes: int) -> Artifact:
    """Return a graph of a report, which holds no tensors, checked and rebuilt; a refusal begins with `told`."""
    return read_graph(Result(WrittenGraph(entries(found), ())), told, max_nodes=max_nodes)


@dataclass(frozen=True)
class Asked:
    """One program: the function of `analysis_programs` that makes it, the arguments, and a name for messages."""

    make: str
    arguments: Mapping[str, Any]
    name: str  # completes "For ..."

    def alone(self) -> "Asked":
        """Return the question about the same graph without inputs: the answer is called with the module alone."""
        return Asked("graph_alone", {k: v for k, v in self.arguments.items() if k != "device"}, self.name)


class AnalysisAnswer:
    """Ask the student's function about one program at a time."""

    def __init__(self, student: Session, clean: Session) -> None:
        self._student = student
        self.graphs = GraphAnswer(student, clean)
        """Runs graphs that came as data, where no code of the student is."""

    @property
    def text(self) -> str:
        """The text of the answer's cell."""
        return self._student.load.parts[-1].text if isinstance(self._student.load, LoadAnswer) else ""

    def ask(self, asked: Asked) -> Json:
        """Return the function's result as plain data; a graph becomes rows of name, op, target and names of inputs."""
        text = inspect.getsource(analysis_programs)
        reply, _ = self._student.call(Analyse(text, asked.make, dict(asked.arguments)))
        return reply.body.value

    def employ(self, programs: ModuleType, use: str, **arguments: Json) -> Json:
        """Return what the function `use` of one of our modules reports after it used the answer in the worker."""
        reply, _ = self._student.call(Employ(inspect.getsource(programs), use, arguments))
        return reply.body.value


@dataclass(frozen=True)
class Belief:
    """A wrong analysis of a program, and the message for a student whose answer equals it."""

    sees: Callable[..., Any]
    says: str


KnownOf = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Maps the maker of a program and its arguments to the right analysis, and to wrong ones with their sentences."""


def known_of(truth: Callable[..., Any], beliefs: Sequence[Belief] = ()) -> KnownOf:
    """Return a function that analyses a program by `truth` and by the functions in `beliefs`."""

    def known(make: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        asked = Asked(make, arguments, "")
        return {"right": truth(*made(asked)), "wrong": [[each.sees(*made(asked)), each.says] for each in beliefs]}

    return known


def sees(
    known: KnownOf,
    programs: Callable[[Draw], Sequence[Asked]],
    *,
    granted: Collection[str] = (),
    together: bool = False,
) -> Callable[[AnalysisAnswer, Draw], None]:
    """Return a check that the answer is right about every program; the programs share its points equally.

    A wrong analysis whose sentence is in `granted` is taken for right, because another check counts that mistake. With
    `together` one wrong program loses all points. White space at the ends of a text does not matter.
    """

    def require(answer: AnalysisAnswer, asked: Asked) -> None:
        found, about = _plain(answer.ask(asked)), known(asked.make, dict(asked.arguments))
        expected = _plain(about["right"])
        mistakes = [says for value, says in about["wrong"] if same(found, _plain(value))]
        if same(found, expected) or any(says in granted for says in mistakes):
            return
        raise CheckFailedError(f"For {asked.name}: {mistakes[0] if mistakes else difference(found, expected)}")

    def run(answer: AnalysisAnswer, draw: Draw) -> None:
        share_among(programs(draw), lambda asked: require(answer, asked), together=together)

    return run


def _plain(value: Any) -> Any:
    """Return texts without white space at their ends and without addresses, which differ between processes."""
    if isinstance(value, str):
        return ADDRESS.sub("", value.strip())
    return [_plain(item) for item in value] if isinstance(value, list) else value


def made(asked: Asked) -> tuple[Any, ...]:
    """Return the values of the program's maker, with which the answer is called."""
    values: tuple[Any, ...] = getattr(analysis_programs, asked.make)(**asked.arguments)
    return values


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
    if isinstance(found, list) and isinstance(expected, list):
        pairs = zip(found, expected, strict=False)
        other = next((i for i, pair in enumerate(pairs) if not same(*pair)), None)
        if other is not None:
            return f"entry {other} is {contrasted(found[other], expected[other])}."
        return f"there are {len(found)} entries, equal as far as they go; expected {len(expected)}."
    return f"the result is {contrasted(found, expected)}."
