"""Call an answer of our own in this process: quick, without a sandbox, and never with anything that a student wrote."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import fx

from autograder.exercises import find
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.analysis import Asked, made
from autograder.host.records import ExerciseStatus
from autograder.host.session import AnswerFailedError


class NotAskedError(Exception):
    """A check wants more of an answer than plain data, which only a worker can give."""


class OwnAnswer:
    """An answer of our own, for checks that ask questions of plain data or about programs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.counted: dict[str, float] = {}

    def ask(self, question: Any, *keys: str, member: str = "") -> Any:
        """Return the answer to a question, or about a program, as plain data."""
        try:
            function = self._function()[member] if member else self._function
            arguments = made(question) if isinstance(question, Asked) else (_copied(question),)
            found = function(*arguments)
            found = {key: found[key] for key in keys if key in found} if keys and isinstance(found, dict) else found
            return _plain(found)
        except Exception as error:  # our functions raise many types on questions that are not theirs
            raise AnswerFailedError(ExerciseStatus.STUDENT_ERROR, str(error), fatal=False) from None

    def ask_each(self, questions: Sequence[Any]) -> list[Any]:
        """Return the answer to each question, as plain data."""
        return [self.ask(question) for question in questions]

    def recount(self, text: str, function: str, question: Any) -> Any:
        """Return what a function of the host's text gives for a question, as `ValueAnswer.recount` does."""
        names: dict[str, Any] = {"__name__": "recount"}
        exec(compile(text, "<recount>", "exec", dont_inherit=True), names)
        return names[function](json.dumps(question))

    @property
    def elsewhere(self) -> "OwnAnswer":
        """Return this answer: ours keep nothing between two calls."""
        return self

    def __getattr__(self, name: str) -> Any:
        raise NotAskedError(name)


def own_answer(exercise_id: str, text: str) -> OwnAnswer:
    """Return the answer with this source text, which must be ours."""
    return OwnAnswer(own_function(exercise_id, text))


def own_function(exercise_id: str, text: str) -> Callable[..., Any]:
    """Return the function that an exercise asks for, from a source text, which must be ours."""
    exercise = find(exercise_id)
    names: dict[str, Any] = {"__name__": "answer"}
    exec(compile(f"{exercise.setup}\n{text}", f"<{exercise_id}>", "exec", dont_inherit=True), names)
    function: Callable[..., Any] = names[exercise.entry_point]
    return function


def points_of(exercise_id: str, answer: OwnAnswer, *, seed: int, hidden: bool = True) -> dict[str, float]:
    """Return the points of each check that only asks, by its name."""
    points: dict[str, float] = {}
    for check in find(exercise_id, hidden=hidden).checks:
        try:
            check.run(answer, Draw(seed, exercise_id, check.name))
        except NotAskedError:
            continue
        except CheckFailedError as error:
            points[check.name] = check.points * error.share
        except AnswerFailedError:
            points[check.name] = 0.0
        else:
            points[check.name] = check.points
    return points


def _copied(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_copied(item) for item in value]
    return {key: _copied(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _plain(value: Any) -> Any:
    """Return a result as it comes from a worker: graphs as rows, tuples as lists."""
    graph = getattr(value, "graph", value)
    if isinstance(graph, fx.Graph):
        return [[n.name, n.op, str(n.target), [a.name for a in n.all_input_nodes]] for n in graph.nodes]
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _plain(item) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} is no plain data")
