"""The journal loses nothing that `append` returned for, holds nothing twice, and has one writer."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder.host.batch.journal import Journal, JournalError, line_of, records_in
from autograder.host.records import (
    CheckRecord,
    CheckStatus,
    ExerciseRecord,
    ExerciseStatus,
    SandboxRecord,
    SubmissionRecord,
)

KILLS = 24
ROOT = Path(__file__).parents[4]


def record(number: int, *, message: str = "") -> SubmissionRecord:
    check = CheckRecord("value", "odd sizes", True, CheckStatus.FAILED, 0.0, 4.0, message)
    exercise = ExerciseRecord("05_pass", "graph", 0.0, 4.0, ExerciseStatus.GRADED, checks=(check,))
    return SubmissionRecord("05_fx", f"student_{number}", f"{number:064x}", SandboxRecord(2), (exercise,))


WRITER = """
import sys
from pathlib import Path
from tests.autograder.host.batch.test_journal import record
from autograder.host.batch.journal import Journal
with Journal(Path(sys.argv[1])) as journal:
    print("ready", flush=True)
    for number in range(int(sys.argv[2]), 100_000):
        journal.append(record(number, message="x" * 3000))
        print(number, flush=True)
"""


def start_writer(path: Path, first: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    with Journal(tmp_path / "deep" / "journal.jsonl") as journal:
        assert journal.append(record(1))
    with Journal(tmp_path / "deep" / "journal.jsonl") as journal:
        assert journal.get(record(1).key) == record(1)
        assert journal.get(record(2).key) is None
        assert list(journal) == [record(1)]


def test_half_a_surrogate_pair_and_a_line_break_in_a_message_are_kept(tmp_path: Path) -> None:
    odd = record(1, message="a \ud800 b\nc\u2028d")
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(odd)
    assert list(records_in(tmp_path / "journal.jsonl")) == [odd]


def test_the_same_key_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        assert journal.append(record(1))
        assert not journal.append(record(1, message="a second opinion"))
    assert list(records_in(path)) == [record(1)]


@pytest.mark.slow
def test_killing_the_writer_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    path, promised, first = tmp_path / "journal.jsonl", [], 0
    dice = random.Random(1)
    for _ in range(KILLS):
        with start_writer(path, first) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(dice.uniform(0.0, 0.06))
            writer.kill()
            promised += [int(line) for line in writer.stdout.read().split()]
        with Journal(path) as journal:
            numbers = [int(r.student.removeprefix("student_")) for r in journal]
        assert set(promised) <= set(numbers)
        first = max(numbers, default=-1) + 1
    lines = path.read_bytes().splitlines()
    assert len(promised) > KILLS
    assert len(lines) == len(set(lines)) == len(numbers) == first


def test_a_torn_last_line_is_cut_off_and_kept_aside_wherever_it_tore(tmp_path: Path) -> None:
    first, second = line_of(record(1)), line_of(record(2))
    for cut in range(1, len(second)):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(first + second[:cut])
        with Journal(path) as journal:
            assert list(journal) == [record(1)]
            assert journal.torn_bytes == cut
            journal.append(record(3))
        assert list(records_in(path)) == [record(1), record(3)]
        assert path.with_name(f"{cut}.jsonl.torn").read_bytes() == second[:cut] + b"\n"


def test_reading_while_a_line_is_being_written_leaves_that_line_out(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(line_of(record(1)) + line_of(record(2))[:50])
    assert list(records_in(path)) == [record(1)]
    assert list(records_in(tmp_path / "not_there.jsonl")) == []


def test_a_changed_line_is_reported_with_its_number_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    forged = line_of(record(2)).replace(b'"points":0.0', b'"points":4.0')
    path.write_bytes(line_of(record(1)) + forged + line_of(record(3)))
    with pytest.raises(JournalError, match=r"line 2 of .* is damaged") as caught:
        Journal(path)
    assert str(caught.value).count(". ") == 0


def test_a_record_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(line_of(SubmissionRecord("a", "s", "0", SandboxRecord(1), (), schema="older/1")))
    with pytest.raises(JournalError, match="not written by this grader"):
        list(records_in(path))


def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with start_writer(path, 0) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(JournalError, match="another grader"):
            Journal(path)
        writer.kill()
    with Journal(path):
        pass
