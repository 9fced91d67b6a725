"""Find pairs of hand-ins with nearly the same answers, whatever the names and the layout; a person looks at them.

An answer is compiled, never run, and read as a row of tokens: instructions, the numbers in them, and the names of what
it uses of others, such as `torch` and `softmax`. Names that the answer chose, comments and layout are left out. Two
rows are compared by their longest common subsequence, by RapidFuzz: it is maintained, in C++, and nbgrader installs it.
What is near a known right answer is left out, because many people write that.
"""

import dis
import functools
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import combinations
from typing import Any

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Indel

from autograder.classroom.hand_in import HandedIn
from autograder.classroom.pages.limited_process import LimitedProcess
from autograder.classroom.report.alike import AlikeAnswers, AlikePair
from autograder.exercises.registry import hidden_part
from autograder.host.artifacts.copied_functions import compiled, functions_in
from autograder.host.records import ExerciseStatus, SubmissionRecord

ALIKE = 0.9  # share of the tokens of two answers that they have in common, in the same order
LEAST_TOKENS = 50  # of one answer, about six lines; below, two people may write the same
LEAST_TOGETHER = 150  # tokens of all answers that a pair has alike, about twenty lines
MOST_TOKENS = 1_500  # of one answer; the rest is not compared, so that long answers take no minutes
MOST_PAIRS = 40
_LETTERS = 1 << 20  # characters that tokens are written with; of more tokens, some share one
_CPU_S = 5.0  # for the tokens of one answer
_OTHERS = frozenset(
    {"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_NAME", "IMPORT_NAME", "IMPORT_FROM", "STORE_ATTR"}
)
_NO_TOKEN = frozenset({"CACHE", "RESUME", "PRECALL", "EXTENDED_ARG", "PUSH_NULL", "COPY_FREE_VARS", "MAKE_CELL", "NOP"})


def alike_pairs(hand_ins: Sequence[HandedIn], records: Sequence[SubmissionRecord]) -> tuple[AlikePair, ...]:
    """Return the pairs of students with nearly the same answers, those with the most first.

    `records` are those of the hand-ins. An exercise that was not answered is not compared.
    """
    found: dict[tuple[str, str], list[tuple[int, AlikeAnswers]]] = {}
    for exercise, answers in _by_exercise(hand_ins, records).items():
        for pair, tokens, alike in _alike(exercise, answers):
            found.setdefault(pair, []).append((tokens, alike))
    long_enough = {pair: sum(tokens for tokens, _ in of_pair) for pair, of_pair in found.items()}
    most_first = sorted((pair for pair in found if long_enough[pair] >= LEAST_TOGETHER), key=lambda p: -long_enough[p])
    return tuple(AlikePair(pair, tuple(alike for _, alike in found[pair])) for pair in most_first[:MOST_PAIRS])


def _by_exercise(hand_ins: Sequence[HandedIn], records: Sequence[SubmissionRecord]) -> dict[str, list[tuple[str, str]]]:
    """Return students and texts of the answers to each exercise."""
    answered: dict[str, list[tuple[str, str]]] = {}
    for hand_in, record in zip(hand_ins, records, strict=True):
        for one in record.exercises:
            if one.status is not ExerciseStatus.NOT_FOUND and one.id in hand_in.answers:
                answered.setdefault(one.id, []).append((hand_in.student, hand_in.answers[one.id]))
    return answered


def _alike(exercise: str, answers: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], int, AlikeAnswers]]:
    """Yield the pairs of students with answers alike, with the tokens of the shorter one."""
    rows = [(student, text, row) for student, text in answers if len(row := _tokens(text)) >= LEAST_TOKENS]
    known = [row for text in _known(exercise) if (row := _tokens(text))]
    letters = _Letters()
    own = [letters.of(row) for _, _, row in rows]
    if len(own) < 2:
        return
    usual = _shares(own, [letters.of(row) for row in known]).any(axis=1)
    shares = _shares(own, own)
    for i, j in combinations(range(len(own)), 2):
        if shares[i, j] >= ALIKE and not usual[i] and not usual[j]:
            (one, text, row), (other, other_text, other_row) = rows[i], rows[j]
            alike = AlikeAnswers(exercise, float(shares[i, j]), (text, other_text))
            yield (one, other), min(len(row), len(other_row)), alike


def _shares(rows: Sequence[str], others: Sequence[str]) -> Any:
    """Return the shares of tokens in common, an array (rows, others); 0 in place of less than `ALIKE`."""
    if not others:
        return np.zeros((len(rows), 1))
    return process.cdist(rows, others, scorer=Indel.normalized_similarity, score_cutoff=ALIKE)


class _Letters:
    """Write rows of tokens as strings, a character for each token, as the comparison in C++ is fastest with them."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, row: Iterable[str]) -> str:
        return "".join(self._known.setdefault(token, chr(0x100 + len(self._known) % _LETTERS)) for token in row)


@functools.cache
def _known(exercise: str) -> tuple[str, ...]:
    """Return the texts of known right answers."""
    part = hidden_part(exercise)
    controls = part.controls if part else ()
    most = max((control.marks for control in controls), default=0.0)
    return tuple(control.answer for control in controls if control.marks == most and not control.below)


def _tokens(text: str) -> list[str]:
    """Return the tokens of an answer; none if it cannot be compiled within limits."""
    row, _ = _process.call({"text": text}, cpu_s=_CPU_S)
    return row.splitlines()[:MOST_TOKENS] if row else []


def _row(text: str) -> str:
    """Return the tokens of an answer, one a line; raises what `compiled` does."""
    code = compiled(text)
    chosen = {one.argval for one in dis.get_instructions(code) if one.opname == "STORE_NAME"}
    return "\n".join(
        token for each in functions_in(code) for one in dis.get_instructions(each) if (token := _token(one, chosen))
    )


def _token(instruction: dis.Instruction, chosen: Set[str]) -> str:
    """Return the token of one instruction; `chosen` are the names that the answer defines."""
    kind, value = instruction.opname, instruction.argval
    if kind in _NO_TOKEN:
        return ""
    if kind in _OTHERS and value not in chosen:
        return f"{value}"
    return repr(value) if kind == "LOAD_CONST" and isinstance(value, int | float) else kind


_process = LimitedProcess(_row)
