"""Give the host generated sources and notebooks, and look for exceptions and for time that grows faster than the text.

    python -m benchmarks.grading.student_texts [--count 20000] [--seed 1] [--quick]

Half of the texts are sources: patterns that nest or repeat, one in another, and solutions of the course with random
changes. The host looks whether each is an untouched answer, whether it can be checked in a notebook, and whether it
would be allowed as the code of a TorchScript archive. The other half are notebooks: cells of any type with any content.
Each is read, rebuilt, repaired and checked against the notebook format; one in twenty is made into a page of feedback.
Exit status 1 if something raised another exception than a refusal, or took longer than a fixed time for each character.
"""

import argparse
import base64
import functools
import gc
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import nbformat

from autograder.classroom.nbgrader.feedback import FeedbackExporter
from autograder.classroom.nbgrader.releases import ReleasedCell
from autograder.classroom.nbgrader.repair import rebuilt, repaired
from autograder.classroom.submission import SubmissionError, parse_submission
from autograder.exercises import all_exercises, find
from autograder.exercises.registry import hidden_part
from autograder.host.artifacts.torchscript_archive import CodeRefusedError, rewritten_code
from autograder.host.grading import STUB_CHARACTERS, stubs_in
from autograder.practice.errors import NotGradableError
from autograder.practice.visible_checks import require_gradable

CHARACTERS = 2 * STUB_CHARACTERS
FIXED_S, A_CHARACTER_S = 0.1, 20e-6  # processor time that a text may take: measured are at most 6 µs for a character
TIMES = 3  # that what took too long is tried
PAGE_S = 1.0  # of this process, for one page; what is typeset has a limit of its own
PAGES = 40  # one notebook in so many becomes a page
REFUSALS = (SubmissionError, CodeRefusedError, NotGradableError)

# Each puts something around a text, or repeats a part beside it.
AROUND: tuple[tuple[str, str], ...] = (
    ("(", ")"), ("[", "]"), ("{", "}"), ("f(", ")"), ("-", ""), ("not ", ""), ("~", ""), ("lambda: ", ""), ("1 + ", ""),
    ("1 if 1 else ", ""), ("await ", ""), ("yield ", ""), ("*", ""), ("f'{", "}'"), ("[x for x in ", "]"),
    ("{1: ", "}"),
    ("if 1:\n ", "\n"), ("class A:\n ", "\n"), ("def f():\n ", "\n"), ("try:\n ", "\nfinally: pass\n"),
    ("with ", ": pass"),
    ("match x:\n case ", ": pass"), ("", ".a"), ("", "[0]"), ("", "()"), ("", " + 1"), ("", " and 1"), ("", " < 1"),
    ("x = ", ""), ("@", "\ndef f(): pass"), ("", "\n"), ("", "\\\n"), ("", " \n"), ("", "\t"), ("'", "'"), ('"""', ""),
    ("\\", ""), ("0x", "f"), ("1", "0"), ("#", "\n"), ("\ud800", ""), ("\0", ""), ("\u202e", ""), ("é", ""),
    ("*a", ""), ("[a](", ")"), ("![a](attachment:", ")"), ("> ", ""), ("- ", ""), ("|", "|\n|-|\n"), ("$", "$"),
    ("$\\sqrt{", "}$"), ("\\begin{a}", "\\end{a}"), ("<a ", ">"), ("`", "`"), ("&#x", ";"), ("```mermaid\n", "\n```"),
)  # fmt: skip
LEAVES = (
    "1",
    "x",
    "'text'",
    "super().__init__()",
    "raise NotImplementedError",
    "pass",
    "a.b.c",
    "",
    "%%html",
    "import os",
)
NAMES = ("cell_type", "source", "metadata", "attachments", "outputs", "id", "nbgrader", "grade_id", "points", "x")
KINDS = ("code", "markdown", "raw", "heading", "", None, 7)


@dataclass
class Findings:
    """What went wrong, and how long the slowest took."""

    tried: int = 0
    wrong: list[str] = field(default_factory=list)
    slowest_us: float = 0.0  # for a character, of texts of 5,000 and more

    def timed(self, what: str, text: str | bytes, call: Callable[[], object], limit_s: float | None = None) -> object:
        """Return the result of `call`, or None if it refused the text; note other exceptions and too much time.

        What took too long is called again: a text that is slow to read is slow each time, and what the machine or
        Python's search for garbage took is not.
        """
        most_s = limit_s or FIXED_S + A_CHARACTER_S * len(text)
        used_s, result = float("inf"), None
        for _ in range(TIMES):
            started_s = time.process_time()
            try:
                result = call()
            except REFUSALS:
                pass
            except Exception as error:
                said = f"{type(error).__name__}: {str(error)[:100]!r}"
                self.wrong.append(f"{what}: {said} for {text[:80]!r} of {len(text)}")
            used_s = min(used_s, time.process_time() - started_s)
            if used_s <= most_s:
                break
        else:
            self.wrong.append(f"{what}: {used_s:.2f} s for {text[:80]!r} of {len(text)}")
        if len(text) >= 5_000 and limit_s is None:
            self.slowest_us = max(self.slowest_us, 1e6 * used_s / len(text))
        return result


def generated_source(draw: random.Random, solutions: list[str]) -> str:
    """Return a text that nests and repeats patterns, or a solution with random changes."""
    if draw.random() < 0.2:
        return changed(draw, draw.choice(solutions))
    text = draw.choice(LEAVES)
    for _ in range(draw.randint(1, 4)):
        before, after = draw.choice(AROUND)
        times = int(10 ** draw.uniform(0, 4.3))
        times = min(times, max(1, (CHARACTERS - len(text)) // max(1, len(before + after))))
        text = f"{before * times}{text}{after * times}"
    if draw.random() < 0.5:
        text = f"def f(x):\n    {text}\n"
    return text[:CHARACTERS]


def changed(draw: random.Random, text: str) -> str:
    """Return the text with some of its parts moved, doubled, or replaced."""
    for _ in range(draw.randint(1, 5)):
        first, last = sorted(draw.choices(range(len(text) + 1), k=2))
        part = draw.choice((text[first:last], "", "(", "\n", " ", draw.choice(LEAVES), text[first:last] * 2))
        text = f"{text[:first]}{part}{text[last:]}"[:CHARACTERS]
    return text


def generated_notebook(draw: random.Random, solutions: list[str]) -> bytes:
    """Return the bytes of a file with cells of any content."""
    cells = [generated_cell(draw, solutions) for _ in range(draw.randint(0, 8))]
    notebook: dict[str, Any] = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    if draw.random() < 0.2:
        notebook[draw.choice(tuple(notebook))] = generated_value(draw, 3)
    content = json.dumps(notebook).encode(draw.choice(("utf-8", "utf-8", "utf-8", "utf-16", "utf-32")))
    return content[: draw.randrange(len(content))] if draw.random() < 0.05 else content


def generated_cell(draw: random.Random, solutions: list[str]) -> Any:
    """Return one cell, of which some parts may have any form."""
    source: Any = generated_source(draw, solutions)
    pictures = {"a.png": {"image/png": base64.b64encode(draw.randbytes(9)).decode()}, "b": generated_value(draw, 2)}
    cell = {
        "cell_type": draw.choice(KINDS),
        "source": source if draw.random() < 0.7 else source.splitlines(keepends=True),
        "metadata": {"nbgrader": {"grade_id": draw.choice((*all_exercises(), "read", "test", ""))}},
        "attachments": pictures,
    }
    for _ in range(draw.choice((0, 0, 1, 3))):
        cell[draw.choice(NAMES)] = generated_value(draw, 4)
    return cell if draw.random() < 0.95 else generated_value(draw, 3)


def generated_value(draw: random.Random, depth: int) -> Any:
    """Return plain data of any form, sometimes nested as deep as JSON is read."""
    kind = draw.randrange(8 if depth else 5)
    if kind == 7 and draw.random() < 0.3:
        value: Any = 1
        for _ in range(draw.randint(1, 940)):
            value = [value] if draw.random() < 0.5 else {draw.choice(NAMES): value}
        return value
    if kind == 7:
        return {
            draw.choice((*NAMES, "\ud800", "x" * 500)): generated_value(draw, depth - 1)
            for _ in range(draw.randint(0, 4))
        }
    if kind >= 5:
        return [generated_value(draw, depth - 1) for _ in range(draw.randint(0, 4))]
    return (None, draw.random() < 0.5, draw.randint(-(10**30), 10**30), draw.uniform(-1, 1), draw.choice(LEAVES))[kind]


def try_source(findings: Findings, text: str) -> None:
    """Give a source to each reader of the host."""
    findings.tried += 1
    findings.timed("stubs_in", text, lambda: stubs_in(text))
    findings.timed("require_gradable", text, lambda: require_gradable(text))
    findings.timed("rewritten_code", text, lambda: rewritten_code(text))


def try_notebook(findings: Findings, content: bytes, *, page: bool) -> None:
    """Read a notebook, rebuild and repair it, and make a page of it if wanted."""
    findings.tried += 1
    submission: Any = findings.timed("parse_submission", content, lambda: parse_submission(content, "a.ipynb"))
    if submission is None:
        return
    for text in submission.answers.values():
        findings.timed("stubs_in", text, functools.partial(stubs_in, text))
    made: Any = findings.timed("rebuilt", content, lambda: rebuilt(submission.notebook))
    if made is None:
        return

    def repair() -> bool:
        made.cells, _ = repaired(made.cells, released())
        nbformat.validate(made)
        return True

    if findings.timed("repaired", content, repair, 5 * (FIXED_S + A_CHARACTER_S * len(content))) and page:
        findings.timed("feedback", content, lambda: FeedbackExporter().from_notebook_node(made), PAGE_S)


def released() -> dict[str, ReleasedCell]:
    """Return a locked text, an answer and a check, as a gradebook has them."""
    flags = {"read": ("markdown", True), "05_bias_silu_pass": ("code", False), "test": ("code", True)}
    return {
        name: ReleasedCell(name, kind, "as it was", {"schema_version": 3, "grade_id": name, "locked": locked})
        for name, (kind, locked) in flags.items()
    }


def solutions_of_the_course() -> list[str]:
    """Return all answers that the course knows."""
    parts = [hidden_part(exercise_id) for exercise_id in all_exercises()]
    return [control.answer for part in parts if part is not None for control in part.controls] or [
        find(exercise_id).setup for exercise_id in all_exercises()
    ]


def trials(count: int, seed: int) -> Iterator[Findings]:
    """Try `count` texts, and yield what was found so far after each."""
    draw, findings, solutions = random.Random(seed), Findings(), solutions_of_the_course()
    for number in range(count):
        if number % 2:
            try_notebook(findings, generated_notebook(draw, solutions), page=number % PAGES == 1)
        else:
            try_source(findings, generated_source(draw, solutions))
        yield findings


def main() -> int:
    """Print what was found; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="200 texts")
    options = parser.parse_args()
    gc.collect()
    gc.freeze()  # a search for garbage among all that is loaded takes longer than any text
    *_, findings = trials(200 if options.quick else options.count, options.seed)
    print(f"texts {findings.tried:,}, exceptions and slow ones {len(findings.wrong)}")
    print(f"slowest reader: {findings.slowest_us:.1f} µs for a character, of texts of 5,000 and more")
    for line in findings.wrong[:50]:
        print(line.encode("utf-8", "replace").decode())
    return 1 if findings.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
