"""No generated source or notebook makes the host fail or hang; see `benchmarks.grading.student_texts`."""

import random
import time

from benchmarks.grading.student_texts import (
    FIXED_S,
    Findings,
    changed,
    generated_notebook,
    generated_source,
    trials,
    try_source,
)
from tests.drawn import chance

COUNT = 60


def test_the_host_reads_any_text_without_an_exception_and_in_time() -> None:
    *_, findings = trials(COUNT, chance("student texts").getrandbits(32))

    assert findings.tried == COUNT
    assert findings.wrong == []


def test_a_reader_that_recurses_or_takes_time_squared_would_be_seen() -> None:
    findings = Findings()

    def recursive(depth: int) -> int:
        return recursive(depth + 1)

    def slow() -> None:
        until_s = time.process_time() + 2 * FIXED_S
        while time.process_time() < until_s:
            pass

    findings.timed("recursive", "x" * 10, lambda: recursive(0))
    findings.timed("slow", "x" * 10, slow)

    assert [line.split(":")[0] for line in findings.wrong] == ["recursive", "slow"]


def test_what_took_long_once_is_called_again() -> None:
    findings, waits_s = Findings(), [2 * FIXED_S, 0.0]

    def slow_once() -> None:
        until_s = time.process_time() + waits_s.pop(0)
        while time.process_time() < until_s:
            pass

    findings.timed("slow once", "x" * 10, slow_once)

    assert (findings.wrong, waits_s) == ([], [])


def test_the_same_seed_gives_the_same_texts() -> None:
    texts = [
        (generated_source(d, ["a = 1"]), generated_notebook(d, ["a"])) for d in (random.Random(3), random.Random(3))
    ]

    assert texts[0] == texts[1]
    assert changed(random.Random(1), "x = 1") != "x = 1"


def test_the_texts_that_once_ended_the_host_are_read() -> None:
    findings = Findings()
    for text in ("+".join(["1"] * 900), "a" + ".a" * 800, "-" * 600 + "1", "not " * 900 + "1", "0x" + "f" * 5_000):
        try_source(findings, f"def f():\n    {text}\n")

    assert findings.wrong == []
