"""The journal loses nothing that `append` returned for, holds nothing twice, and has one writer."""

import errno
import hashlib
import multiprocessing
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from autograder.classroom.batch import journal as module
from autograder.classroom.batch.journal import Journal, JournalError, Key, find_record, line_of, records_in
from autograder.host.records import (
    CheckRecord,
    CheckStatus,
    ExerciseRecord,
    ExerciseStatus,
    SandboxRecord,
    SubmissionRecord,
)

KILLS = 24


def record(number: int, *, message: str = "") -> SubmissionRecord:
    check = CheckRecord("value", "odd sizes", True, CheckStatus.FAILED, 0.0, 4.0, message)
    exercise = ExerciseRecord("05_pass", "graph", 0.0, 4.0, ExerciseStatus.GRADED, checks=(check,))
    return SubmissionRecord("05_fx", f"student_{number}", f"{number:064x}", SandboxRecord(2), (exercise,))


def key(number: int) -> Key:
    return record(number).key[:3]


def write_for_ever(path: Path, first: int, promised: Connection) -> None:
    """Append records, and say the number of each once `append` has returned."""
    with Journal(path) as journal:
        promised.send_bytes(b"ready")
        for number in range(first, 100_000):
            journal.append(record(number, message="x" * 3000))
            promised.send_bytes(str(number).encode())


@contextmanager
def writer(path: Path, first: int) -> Iterator[tuple[BaseProcess, Connection]]:
    """A writing process of its own, killed at the end if it still lives; forked, to be there in milliseconds."""
    forked = multiprocessing.get_context("fork")
    ours, theirs = forked.Pipe(duplex=False)
    process = forked.Process(target=write_for_ever, args=(path, first, theirs))
    process.start()
    theirs.close()
    try:
        assert ours.recv_bytes() == b"ready"
        yield process, ours
    finally:
        process.kill()
        process.join()


def all_promises(pipe: Connection) -> Iterator[int]:
    """Numbers that arrived before the writer was gone."""
    with suppress(EOFError):
        while True:
            yield int(pipe.recv_bytes())


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    with Journal(tmp_path / "deep" / "journal.jsonl") as journal:
        assert journal.append(record(1))
    with Journal(tmp_path / "deep" / "journal.jsonl") as journal:
        assert journal.get(key(1)) == record(1)
        assert journal.get(key(2)) is None
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


def test_killing_the_writer_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    path, promised, first = tmp_path / "journal.jsonl", [], 0
    dice = random.Random(1)
    for kill in range(KILLS):
        with writer(path, first) as (process, pipe):
            if kill % 2:  # the others may be killed before they have written anything, on a busy machine
                promised += [int(pipe.recv_bytes()), int(pipe.recv_bytes())]
            time.sleep(dice.uniform(0.0, 0.05))
            process.kill()
            promised += list(all_promises(pipe))
        with Journal(path) as journal:
            numbers = [int(r.student.removeprefix("student_")) for r in journal]
        assert set(promised) <= set(numbers)
        first = max(numbers, default=-1) + 1
    lines = path.read_bytes().splitlines()
    assert len(promised) >= KILLS // 2 * 2
    assert len(lines) == len(set(lines)) == len(numbers) == first


def test_a_torn_last_line_is_cut_off_and_kept_aside_wherever_it_tore(tmp_path: Path) -> None:
    first, second = line_of(record(1)), line_of(record(2))
    for cut in sorted({*range(1, len(second), 17), len(second) - 1}):
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
    with writer(path, 0), pytest.raises(JournalError, match="another grader"):
        Journal(path)
    with Journal(path):
        pass


def test_a_full_disk_costs_one_append_and_damages_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "journal.jsonl", os.write

    def half_then_full(fd: int, data: bytes) -> int:
        if len(data) < len(line_of(record(1))):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[: len(data) // 2])

    with Journal(path) as journal:
        journal.append(record(0))
        monkeypatch.setattr(os, "write", half_then_full)
        with pytest.raises(OSError, match="No space left"):
            journal.append(record(1))
        monkeypatch.setattr(os, "write", write)
        assert journal.append(record(1))
    assert [r.student for r in records_in(path)] == ["student_0", "student_1"]


def test_a_record_is_found_by_its_key_without_reading_the_others_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(line_of(record(number)) for number in range(50)))
    read: list[str] = []
    decode = module._record_of
    monkeypatch.setattr(module, "_record_of", lambda line, where: read.append(where) or decode(line, where))
    assert [find_record(path, key(number)) for number in range(50)] == [record(n) for n in range(50)]
    assert len(read) == 50 + 50  # each line once for all, and each record when it is asked for
    assert find_record(path, key(50)) is None
    assert len(read) == 100


def test_what_another_process_writes_is_found_and_what_a_person_removed_is_not(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert find_record(path, key(1)) is None
    for lines in ((1,), (1, 2), (3, 2), (2, 1, 3), (3, 2)):
        path.write_bytes(b"".join(line_of(record(number)) for number in lines))
        found = {number for number in (1, 2, 3) if find_record(path, key(number)) == record(number)}
        assert found == set(lines)
        with Journal(path) as journal:
            assert {number for number in (1, 2, 3) if key(number) in journal} == set(lines)
    path.unlink()
    assert find_record(path, key(2)) is None


def test_a_record_that_is_damaged_after_it_was_read_is_reported_when_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(line_of(record(1)) + line_of(record(2)))
    assert find_record(path, key(1)) == record(1)
    path.write_bytes(path.read_bytes().replace(b'"points":0.0', b'"points":4.0', 1))
    with pytest.raises(JournalError, match=r"line 1 of .* is damaged"):
        find_record(path, key(1))


def test_a_record_before_a_damaged_line_is_found_and_one_behind_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(line_of(record(1)) + b"x" * 200 + b"\n" + line_of(record(3)))
    with pytest.raises(JournalError, match=r"line 2 of .* is damaged"):
        find_record(path, key(3))
    assert find_record(path, key(1)) == record(1)


def test_what_is_no_file_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    for name, words in (
        ("folder", "is a folder"),
        ("pipe", "not a regular file"),
        ("file/journal", "cannot be opened"),
    ):
        with pytest.raises(JournalError, match=words) as caught:
            Journal(tmp_path / name)
        assert str(caught.value).count(". ") == 0
        assert "\n" not in str(caught.value)
    assert find_record(tmp_path / "folder", key(1)) is None


@pytest.mark.parametrize(
    "lines", [(0, 1, None, 2), (None, 0, 1, 2), (0, 1, 2, None), (0, 1, 0, 2), (0, 0, 1, 1, None, 2)]
)
def test_empty_and_doubled_lines_change_nothing(tmp_path: Path, lines: tuple[int | None, ...]) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(b"\n" if number is None else line_of(record(number)) for number in lines))
    for _ in range(2):
        with Journal(path) as journal:
            assert list(journal) == [record(number) for number in range(3)]
            assert [journal.get(key(number)) for number in range(4)] == [*(record(n) for n in range(3)), None]
            assert not journal.append(record(1))
    with Journal(path) as journal:
        assert journal.append(record(3))
    assert find_record(path, key(3)) == record(3)


def test_of_two_lines_with_one_key_the_first_counts(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(line_of(record(1)) + line_of(record(1, message="a second opinion")))
    with Journal(path) as journal:
        assert journal.get(key(1)) == record(1)
    assert list(records_in(path)) == [record(1)]


def graded_with(version: str) -> SubmissionRecord:
    (exercise,) = record(1).exercises
    return replace(record(1), exercises=(replace(exercise, version={"exercise": version}),))


def test_of_several_versions_the_last_counts_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for version, is_new in (("first", True), ("second", True), ("first", True), ("first", False)):
        with Journal(path) as journal:
            assert journal.append(graded_with(version)) is is_new
            assert journal.get(key(1)) == find_record(path, key(1)) == graded_with(version)
            assert len(journal) == 1
    assert list(records_in(path)) == [graded_with(version) for version in ("first", "second", "first")]


def test_a_line_from_before_versions_were_kept_is_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    body = record(1).to_json().replace(',"version":{}', "").encode()
    assert b'version":{}' not in body
    path.write_bytes(b'{"sha256":"' + hashlib.sha256(body).hexdigest().encode() + b'","record":' + body + b"}\n")
    with Journal(path) as journal:
        assert journal.get(key(1)) == record(1)
        assert journal.append(graded_with("first"))
    assert list(records_in(path)) == [record(1), graded_with("first")]
