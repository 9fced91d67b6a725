"""Measure how much of an exercise of plain data can be earned without its skill, from questions that were seen before.

`memory` is all that a student can keep of such an exercise: the questions of the visible checks with their answers, for
many seeds. The tables that students install hold no more. `NearestNeighbour` answers a new question as the most similar
one that it remembers. All answers here are our own, and run in this process.
"""

import functools
import itertools
import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autograder.exercises import find
from autograder.exercises.quality.in_process import NotAskedError, OwnAnswer, own_function
from autograder.exercises.quality.question_tables import SEEDS, remembering
from autograder.exercises.questions import Results
from autograder.exercises.registry import hidden_part
from autograder.host.draw import Draw
from autograder.host.exercise import REFERENCE, CheckFailedError
from autograder.host.kinds.analysis import Asked
from autograder.host.session import AnswerFailedError

WORD = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?|[^\w\s]+")
GRADINGS = 10


@dataclass(frozen=True)
class Remembered:
    """The questions of some gradings with their answers, and what each check of each grading asked."""

    answers: Mapping[str, Any] = field(default_factory=dict)  # by the question's text
    asked: tuple[frozenset[str], ...] = ()  # for each grading the texts of its questions

    @property
    def different(self) -> int:
        """Return the number of different questions."""
        return len(frozenset().union(*self.asked))

    @property
    def ratio(self) -> float:
        """Return how many times the questions of one grading, on average, the different ones are."""
        return self.different * len(self.asked) / sum(map(len, self.asked))


class Noting(OwnAnswer):
    """An answer of our own that notes each question with the answer."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.noted: Results = {}

    def ask(self, question: Any, *keys: str, member: str = "") -> Any:
        """Return the answer, and note it with the question."""
        found = super().ask(question, *keys, member=member)
        self.noted[text_of(question, *keys, member)] = found
        return found


def text_of(question: Any, *more: str) -> str:
    """Return one text for a question and the entries wanted of its answer; a program is what it is made of."""
    asked = [question.make, dict(question.arguments)] if isinstance(question, Asked) else question
    return json.dumps([asked, *more], sort_keys=True)


def memory(exercise_id: str, seeds: Iterable[int] = range(SEEDS), *, hidden: bool = False) -> Remembered:
    """Return what the checks ask for these seeds, with the answers of the reference solution."""
    part = hidden_part(exercise_id)
    assert part is not None, "only instructors have the reference solutions"
    text = next(control.answer for control in part.controls if control.name == REFERENCE)
    function = remembering(own_function(exercise_id, text))
    answers: Results = {}
    gradings = []
    for seed in seeds:
        answer = Noting(function)
        points_by_check(exercise_id, answer, seed=seed, hidden=hidden)
        answers |= answer.noted
        gradings.append(frozenset(answer.noted))
    return Remembered(answers, tuple(gradings))


def points_by_check(exercise_id: str, answer: OwnAnswer, *, seed: int, hidden: bool = True) -> dict[str, float]:
    """Return the points of each check; one that asks for more than plain data has none."""
    points = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Inductor and TorchScript think of small programs
        for check in find(exercise_id, hidden=hidden).checks:
            earned = check.points
            try:
                check.run(answer, Draw(seed, exercise_id, check.name))
            except CheckFailedError as error:
                earned *= error.share
            except (AnswerFailedError, NotAskedError):
                earned = 0.0
            points[check.name] = earned
    return points


class NearestNeighbour(OwnAnswer):
    """Answer each question as the most similar one that is remembered.

    Two questions are the more similar, the more of their parts they share: names with their values, and words of texts
    with the word before. A part that few questions have counts more.
    """

    def __init__(self, remembered: Remembered) -> None:
        super().__init__(lambda: None)
        self._answers = remembered.answers
        self._of = {text: parts(text) for text in self._answers}
        self._holders: dict[str, set[str]] = defaultdict(set)
        for text, own in self._of.items():
            for part in own:
                self._holders[part].add(text)
        self._size = {text: self._weight(own) for text, own in self._of.items()}

    def ask(self, question: Any, *keys: str, member: str = "") -> Any:
        """Return the answer to the nearest question."""
        text = text_of(question, *keys, member)
        return self._answers[text if text in self._answers else self._nearest(text)]

    def _nearest(self, text: str) -> str:
        own = parts(text)
        shared: defaultdict[str, float] = defaultdict(float)
        for part, count in own.items():
            for holder in self._holders.get(part, ()):
                shared[holder] += min(count, self._of[holder][part]) / len(self._holders[part])
        size = self._weight(own)
        candidates = shared or self._answers
        return max(candidates, key=lambda each: shared[each] / (size + self._size[each] - shared[each] + 1e-9))

    def _weight(self, own: Counter[str]) -> float:
        return sum(count / max(1, len(self._holders.get(part, ()))) for part, count in own.items())


@functools.lru_cache(maxsize=100_000)
def parts(text: str) -> Counter[str]:
    """Return the parts of a question, each with how often it occurs."""
    found: Counter[str] = Counter()

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                found[f"{path}.{key}"] += 1
                walk(item, f"{path}.{key}")
        elif isinstance(value, list):
            for item in value:
                walk(item, f"{path}[]")
        elif isinstance(value, str):
            words = WORD.findall(value)
            found.update(f"{path}={word}" for word in words)
            found.update(f"{path}={first} {second}" for first, second in itertools.pairwise(words))
        else:
            found[f"{path}={value!r}"] += 1

    walk(json.loads(text), "")
    return found


def learned_points(exercise_id: str, remembered: Remembered, *, gradings: int = GRADINGS) -> dict[str, float]:
    """Return what the nearest neighbours of `remembered` earn in each check, on average of some fresh gradings."""
    earned: defaultdict[str, float] = defaultdict(float)
    for seed in range(gradings):
        learner = NearestNeighbour(remembered)
        for name, points in points_by_check(exercise_id, learner, seed=10_000 + seed).items():
            earned[name] += points / gradings
    return dict(earned)
