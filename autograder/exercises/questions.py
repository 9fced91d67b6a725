"""Keep the answers to a check's questions out of the students' installation.

A function that answers what a check asks stands in the exercise's hidden part, and the visible part reaches it by
`kept`. Where the hidden part is installed, the function is called, so checks ask fresh questions. Students get a table
of results instead, for the questions that a few dozen seeds draw: `practice_seed` returns one of these seeds.
"""

import functools
import hashlib
import importlib
import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

from autograder.exercises.lessons import exercise_id, module_name
from autograder.exercises.registry import hidden_folder
from autograder.host.grading import new_seed

SHIPPED = Path(__file__).parent / "shipped"
"""A file for each exercise with kept functions, in a student's installation only."""

Question = dict[str, Any]
"""A question to an answer, or a part of one, as plain data: it becomes JSON."""

Results = dict[str, Any]
_RECORDED: ContextVar[Results | None] = ContextVar("recorded", default=None)
KEPT_RESULTS = 200
"""Results that are held for another call: a check asks of a question what its draw has asked, to find it."""
_LATEST: dict[tuple[Callable[..., Any], str], str] = {}
"""The results as JSON, the latest one last."""


class NotShippedError(LookupError):
    """The students' installation has no answer to a question."""


class Known(TypedDict):
    """What a kept function knows about one question."""

    right: Any
    wrong: list[list[Any]]  # pairs of a wrong answer and the sentence that names the mistake


class Kept:
    """A function of an exercise's hidden part, or the table of its results where there is none.

    Arguments and results are plain data: they become JSON, so that both ways return the same.
    """

    def __init__(self, module: str, name: str) -> None:
        self._exercise, self._name = exercise_id(module), name

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return the result for these arguments; raises `NotShippedError` where the table has none."""
        key = _key(self._name, args, options)
        if hidden_folder() is None:
            return _shipped_results(self._exercise, key)
        function = getattr(importlib.import_module(module_name(self._exercise, hidden=True)), self._name)
        results, latest = _RECORDED.get(), (function, key)
        text = _LATEST.pop(latest, None) or json.dumps(function(*args, **options))
        _LATEST[latest] = text
        if len(_LATEST) > KEPT_RESULTS:
            del _LATEST[next(iter(_LATEST))]
        if results is not None:
            results[key] = json.loads(text)
        return json.loads(text)

    def later(self, *args: Any, **options: Any) -> Callable[[], Any]:
        """Return a function for the result, for what takes time and is seldom asked; a recording asks it at once."""
        if _RECORDED.get() is not None:
            self(*args, **options)
        return functools.partial(self, *args, **options)


def kept(module: str, name: str) -> Any:
    """Return the function called `name` of the hidden part of the exercise whose visible module is `module`.

    >>> truth = kept(__name__, "truth")
    """
    return Kept(module, name)


def keeps_answers(module: ModuleType) -> bool:
    """Return whether an exercise's module has kept functions."""
    return any(isinstance(value, Kept) for value in vars(module).values())


def practice_seed(exercise: str) -> int:
    """Return a random seed whose questions have answers here: any seed where no answers are shipped."""
    file = SHIPPED / f"{exercise}.json"
    if hidden_folder() is not None or not file.is_file():
        return new_seed()
    return random.SystemRandom().choice(list(_table(file)["seeds"]))


@contextmanager
def recorded() -> Iterator[Results]:
    """Collect the results of all kept functions that are called inside."""
    results: Results = {}
    token = _RECORDED.set(results)
    try:
        yield results
    finally:
        _RECORDED.reset(token)


def shipped_text(seeds: list[int], results: Results) -> str:
    """Return the text of a file in `SHIPPED`; equal texts in the results are stored once."""
    texts: dict[str, int] = {}

    def pack(value: Any) -> Any:
        if isinstance(value, str):
            return texts.setdefault(value, len(texts))
        if isinstance(value, list):
            return [pack(item) for item in value]
        if isinstance(value, dict):
            return {"": [[pack(key), pack(item)] for key, item in value.items()]}
        return {"n": value} if type(value) is int else value

    packed = {key: pack(value) for key, value in results.items()}
    return json.dumps({"seeds": seeds, "texts": list(texts), "results": packed}, separators=(",", ":"))


def unpacked(value: Any, texts: list[str]) -> Any:
    """Return a result as it was before `shipped_text`."""
    if type(value) is int:
        return texts[value]
    if isinstance(value, list):
        return [unpacked(item, texts) for item in value]
    if isinstance(value, dict):
        if "n" in value:
            return value["n"]
        return {unpacked(key, texts): unpacked(item, texts) for key, item in value[""]}
    return value


def _key(name: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> str:
    text = json.dumps([name, args, options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def _table(file: Path) -> Mapping[str, Any]:
    table: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    return table


def _shipped_results(exercise: str, key: str) -> Any:
    file = SHIPPED / f"{exercise}.json"
    table = _table(file) if file.is_file() else {"results": {}}
    if key not in table["results"]:
        raise NotShippedError(f"{file.name} has no answer to a question of {exercise}; install the course again.")
    return unpacked(table["results"][key], table["texts"])
