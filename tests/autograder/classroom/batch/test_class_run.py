"""A class is graded into the journal: nothing twice, errors of ours never, and everything after a restart."""

import dataclasses
import hashlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from autograder.classroom import hand_in as hand_in_module
from autograder.classroom.batch import (
    Journal,
    LocalEngine,
    fingerprint,
    grade_class,
    records_in,
    secret_seed,
)
from autograder.classroom.batch.slots import Slots
from autograder.classroom.exercise_versions import version_of
from autograder.classroom.hand_in import HandedIn, handed_in, read_hand_in
from autograder.classroom.nbgrader.repair import readable_notebook
from autograder.exercises import find, of_assignment
from autograder.host.records import GRADER_VERSION, ExerciseRecord, ExerciseStatus, SandboxRecord, SubmissionRecord
from tests.architecture.source_tree import ROOT


class FakeSandbox:
    """Stands where a sandbox is passed on and never used."""

    level, notes = 1, ()


class CountedHandIn(HandedIn):
    """A hand-in whose grading is counted instead of done."""

    graded: list[str] = []  # noqa: RUF012 - shared on purpose
    status = ExerciseStatus.GRADED

    def grade(self, *, sandbox: object, seed: int) -> SubmissionRecord:
        self.graded.append(self.student)
        exercise = ExerciseRecord("x", "value", 0.0, 0.0, self.status)
        return SubmissionRecord(self.assignment, self.student, self.sha256, SandboxRecord(1), (exercise,))


class FailingHandIn(CountedHandIn):
    """A hand-in that we fail to grade."""

    status = ExerciseStatus.GRADER_ERROR


@pytest.fixture
def hand_ins(tmp_path: Path) -> list[CountedHandIn]:
    CountedHandIn.graded.clear()
    for name in "abcd":
        (tmp_path / name).write_text(name)
    return [counted(tmp_path / name) for name in "abcd"]


def counted(path: Path, kind: type[HandedIn] = CountedHandIn, assignment: str = "05_fx") -> HandedIn:
    """Return a hand-in of `kind` with the hash of what lies at `path` now."""
    return kind(assignment, path.name, path, read_hand_in(assignment, path.name, path).sha256)


def run(hand_ins: list, journal: Path) -> tuple:  # type: ignore[type-arg]
    with Journal(journal) as opened:
        done = grade_class(hand_ins, opened, engine=LocalEngine(FakeSandbox(), 2), seed=1)  # type: ignore[arg-type]
    return [r.student for r in done.records], done.from_journal, len(done.unfinished)


def test_every_hand_in_is_graded_once_and_found_again(hand_ins, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    assert run(hand_ins[:2], journal) == (["a", "b"], 0, 0)
    assert run(hand_ins, journal) == (["a", "b", "c", "d"], 2, 0)
    assert sorted(CountedHandIn.graded) == ["a", "b", "c", "d"]


class StoppedHandIn(CountedHandIn):
    """A hand-in whose answer is stopped while another hand-in is graded, and one whose answer always is."""

    beside: list[str] = []  # noqa: RUF012 - shared on purpose
    status = ExerciseStatus.TIMED_OUT

    def grade_again(self, record: SubmissionRecord, *, sandbox: object, seed: int) -> SubmissionRecord:
        self.beside.append("".join(sorted(self.graded)) + self.student)
        status = ExerciseStatus.GRADED if self.student == "a" else self.status
        return dataclasses.replace(record, exercises=(dataclasses.replace(record.exercises[0], status=status),))


@pytest.mark.parametrize("status", [ExerciseStatus.TIMED_OUT, ExerciseStatus.OUT_OF_MEMORY, ExerciseStatus.KILLED])
def test_an_answer_that_was_stopped_beside_others_is_graded_again_after_them(
    hand_ins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: ExerciseStatus
) -> None:
    monkeypatch.setattr(StoppedHandIn, "status", status)
    StoppedHandIn.beside.clear()
    stopped = [counted(tmp_path / name, StoppedHandIn) for name in "ab"]
    assert run([*stopped, *hand_ins[2:]], tmp_path / "journal.jsonl") == (["a", "b", "c", "d"], 0, 0)
    assert sorted(StoppedHandIn.beside) == ["abcda", "abcdb"]
    statuses = {record.student: record.exercises[0].status for record in records_in(tmp_path / "journal.jsonl")}
    assert statuses == dict.fromkeys("acd", ExerciseStatus.GRADED) | {"b": status}


@pytest.mark.parametrize(("count", "slots"), [(1, 2), (2, 1)])
def test_an_answer_that_was_stopped_alone_is_not_graded_again(tmp_path: Path, count: int, slots: int) -> None:
    StoppedHandIn.beside.clear()
    for name in "ab"[:count]:
        (tmp_path / name).touch()
    stopped = [counted(tmp_path / name, StoppedHandIn) for name in "ab"[:count]]
    records = [record for _, record in LocalEngine(FakeSandbox(), slots).grade(stopped, seed=1)]  # type: ignore[arg-type]
    assert [record.exercises[0].status for record in records] == [ExerciseStatus.TIMED_OUT] * count
    assert StoppedHandIn.beside == []


def test_only_what_was_stopped_is_graded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_in = counted(tmp_path / "a", HandedIn, "00_start_here")
    first, second = (ExerciseRecord(e, "value", 0.0, 1.0, ExerciseStatus.GRADED) for e in of_assignment("00"))
    stopped = dataclasses.replace(second, status=ExerciseStatus.OUT_OF_MEMORY)
    record = SubmissionRecord(hand_in.assignment, "a", hand_in.sha256, SandboxRecord(1), (first, stopped))
    asked: list[str] = []
    monkeypatch.setattr(hand_in_module, "grade_exercise", lambda e, *_, **__: asked.append(e.id) or second)
    again = dataclasses.replace(second, version=version_of(second.id))
    assert hand_in.grade_again(record, sandbox=FakeSandbox(), seed=1).exercises == (first, again)
    assert asked == [second.id]


def test_a_changed_file_is_another_submission(hand_ins, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    run(hand_ins, journal)
    (tmp_path / "a").write_text("better")
    again = [counted(h.path) for h in hand_ins]
    assert run(again, journal)[1] == 3
    assert CountedHandIn.graded.count("a") == 2


def test_an_error_of_ours_is_not_written_down_and_tried_again(hand_ins, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    failing = [counted(tmp_path / "a", FailingHandIn), *hand_ins[1:]]
    assert run(failing, journal) == (["a", "b", "c", "d"], 0, 1)
    assert {r.student for r in records_in(journal)} == {"b", "c", "d"}
    assert run(hand_ins, journal) == (["a", "b", "c", "d"], 3, 0)


class BrokenHandIn(HandedIn):
    """A hand-in whose grading fails as no grading should."""

    def grade(self, *, sandbox: object, seed: int) -> SubmissionRecord:
        raise ZeroDivisionError("an unexpected error")


def test_an_unexpected_error_is_one_hand_ins_and_everybody_else_is_graded(hand_ins, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    (tmp_path / "e").write_text("e")
    mixed = [counted(tmp_path / "e", BrokenHandIn, "05_fx_rewrite"), *hand_ins]
    with Journal(journal) as opened:
        done = grade_class(mixed, opened, engine=LocalEngine(FakeSandbox(), 1), seed=1)  # type: ignore[arg-type]
    assert [r.student for r in records_in(journal)] == ["a", "b", "c", "d"]
    (unfinished,) = done.unfinished
    assert (unfinished.student, unfinished.max_points) == ("e", 0.0)
    assert all("an unexpected error" in e.message for e in unfinished.exercises)


class HangingHandIn(CountedHandIn):
    """A hand-in at which a step of the grader hangs."""

    def grade(self, *, sandbox: object, seed: int) -> SubmissionRecord:
        threading.Event().wait()
        raise AssertionError


@pytest.mark.parametrize("slots", [1, 2])
def test_a_step_that_hangs_costs_its_hand_in_alone(hand_ins, slots: int, tmp_path: Path) -> None:
    mixed = [
        hand_ins[0],
        *(counted(tmp_path / name, HangingHandIn, "05_fx_rewrite") for name in "bc"),
        counted(tmp_path / "d"),
    ]
    with Journal(tmp_path / "journal.jsonl") as opened:
        engine = LocalEngine(FakeSandbox(), slots, limit_s=0.5)  # type: ignore[arg-type]
        done = grade_class(mixed, opened, engine=engine, seed=1)

    assert CountedHandIn.graded == ["a", "d"]
    assert [record.student for record in done.unfinished] == ["b", "c"]
    assert all("did not end within 0.5 s" in e.message for record in done.unfinished for e in record.exercises)


def test_a_record_that_waits_is_not_lost_when_the_next_hand_in_of_its_slot_is_late(hand_ins) -> None:
    begun = threading.Event()

    def grade(hand_in: HandedIn) -> SubmissionRecord:
        if hand_in is hand_ins[1]:
            begun.set()
            threading.Event().wait()
        return hand_in.not_graded("done")

    slots = Slots(1, 0.1, grade)
    for hand_in in hand_ins[:2]:
        slots._waiting.put(hand_in)
    slots._start()
    assert begun.wait(60)  # the record of the first waits
    while (late := slots._late()) is None:
        time.sleep(0.01)

    assert late[0] is hand_ins[1]
    assert slots._next()[0] is hand_ins[0]


def test_a_process_ends_although_a_step_hangs() -> None:
    program = (
        "from pathlib import Path\n"
        "from tests.autograder.classroom.batch.test_class_run import FakeSandbox, HangingHandIn, LocalEngine\n"
        "hand_in = HangingHandIn('05_fx_rewrite', 'b', Path('b'), '0')\n"
        "((_, record),) = LocalEngine(FakeSandbox(), 1, limit_s=0.1).grade([hand_in], seed=1)\n"
        "print(record.student)\n"
    )

    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)

    assert (ended.returncode, ended.stdout) == (0, "b\n"), ended.stderr


def test_an_interruption_keeps_what_was_graded_and_stops_what_has_not_begun(hand_ins, tmp_path: Path) -> None:
    def interrupt(record: SubmissionRecord) -> None:
        raise KeyboardInterrupt

    journal = tmp_path / "journal.jsonl"
    with Journal(journal) as opened, pytest.raises(KeyboardInterrupt):
        grade_class(hand_ins, opened, engine=LocalEngine(FakeSandbox(), 1), seed=1, on_record=interrupt)  # type: ignore[arg-type]
    assert run(hand_ins, journal)[1] >= 1
    assert len(list(records_in(journal))) == 4


def test_grading_again_with_a_new_version_keeps_the_old_line(hand_ins, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    run(hand_ins, journal)
    with Journal(journal) as opened:
        for record in tuple(opened):
            assert opened.append(dataclasses.replace(record, grader_version="9.9.9"))
    versions = [record.grader_version for record in records_in(journal)]
    assert versions == [GRADER_VERSION] * 4 + ["9.9.9"] * 4


def test_what_was_handed_in_is_found_by_assignment_then_student(tmp_path: Path) -> None:
    for student, assignment in (("b", "01_x"), ("a", "01_x"), ("a", "02_y"), ("a", "unknown")):
        (tmp_path / student / assignment).mkdir(parents=True)
    found = handed_in(tmp_path, ["02_y", "01_x"])
    assert [(h.assignment, h.student) for h in found] == [("01_x", "a"), ("01_x", "b"), ("02_y", "a")]
    assert found[0].path == tmp_path / "a" / "01_x" / "01_x.ipynb"
    assert handed_in(tmp_path / "nowhere", ["01_x"]) == []


def test_the_hash_is_that_of_the_file_and_never_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("text")
    (tmp_path / "link").symlink_to("real")
    assert read_hand_in("a", "s", tmp_path / "real").sha256 == hashlib.sha256(b"text").hexdigest()
    assert read_hand_in("a", "s", tmp_path / "link").sha256 != hashlib.sha256(b"text").hexdigest()


def test_a_hand_in_is_read_and_digested_once_and_its_notebook_is_not_kept(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "s" / "05_fx_rewrite" / "05_fx_rewrite.ipynb"
    path.parent.mkdir(parents=True)
    cell = {"cell_type": "code", "source": "x", "metadata": {"nbgrader": {"grade_id": "05_bias_silu_pass"}}}
    path.write_text(json.dumps({"cells": [cell]}))
    (found,) = handed_in(tmp_path, ["05_fx_rewrite"])
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    path.unlink()  # nothing that follows reads it
    assert (found.sha256, found.notebook, dict(found.answers)) == (expected, None, {"05_bias_silu_pass": "x"})
    given: list[object] = []
    record = SubmissionRecord("05_fx_rewrite", "s", "0", SandboxRecord(1), ())
    monkeypatch.setattr(hand_in_module, "grade_answers", lambda *a, **named: given.append((a[2], named)) or record)
    found.grade(sandbox=FakeSandbox(), seed=1)  # type: ignore[arg-type]
    ((answers, named),) = given  # type: ignore[misc]
    assert (answers, named["submission_sha256"]) == (found.answers, expected)


def test_a_fault_of_ours_while_reading_is_one_hand_ins_and_takes_no_points(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "s" / "05_fx_rewrite" / "05_fx_rewrite.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    monkeypatch.setattr(hand_in_module, "parse_submission", lambda *_: 1 / 0)
    (found,) = handed_in(tmp_path, ["05_fx_rewrite"])
    record = found.grade(sandbox=FakeSandbox(), seed=1)  # type: ignore[arg-type]
    assert {e.status for e in record.exercises} == {ExerciseStatus.GRADER_ERROR}
    assert all("ZeroDivisionError" in e.message for e in record.exercises)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        readable_notebook(found, tmp_path / "released.ipynb")


def test_an_unreadable_hand_in_gets_zero_with_a_sentence_for_every_exercise(tmp_path: Path) -> None:
    path = tmp_path / "05_fx_rewrite.ipynb"
    for content, words in (("", "was not handed in"), ('{"cells": [', "not JSON"), ("[]", "not a notebook")):
        path.write_text(content)
        record = read_hand_in("05_fx_rewrite", "s", path).grade(sandbox=FakeSandbox(), seed=1)  # type: ignore[arg-type]
        points = sum(find(name, hidden=True).points for name in of_assignment("05_fx_rewrite"))
        assert (record.points, record.max_points) == (0.0, points)
        assert all(words in e.message for e in record.exercises)
        assert words in record.notes[-1]


def test_a_seed_is_drawn_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "seed"
    seed = secret_seed(path)
    assert secret_seed(path) == seed
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret_seed(tmp_path / "other") != seed
    assert [p.name for p in path.parent.iterdir()] == ["seed"]


def test_a_fingerprint_tells_seeds_apart_and_does_not_hold_them() -> None:
    assert fingerprint(1) != fingerprint(2)
    assert fingerprint(1) == fingerprint(1)
    assert len(fingerprint(2**62)) == 8
