"""A trial from request to reply: whose turn it is, what a reply says, and that a killed server goes on."""

import errno
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from autograder.classroom.trials import serve_command, server
from autograder.classroom.trials.server import FAULT, GIVEN_UP, TrialServer
from autograder.exercises import find
from autograder.host.records import ExerciseStatus
from autograder.host.spool import Places, TrialReply, TrialRequest, request_bytes
from tests.autograder.classroom.trials.conftest import Judge
from tests.autograder.classroom.trials.students import ALICE, EXERCISE, MALLORY, REQUEST, as_root, names, put

Start = Callable[..., TrialServer]
ReplyTo = Callable[[str], TrialReply]


def test_a_request_is_judged_by_visible_checks_only_and_leaves_nothing_but_its_reply(
    places: Places, start: Start, judge: Judge, reply_to: ReplyTo
) -> None:
    name, at_work = put(places), start()

    assert at_work.turn()
    assert not at_work.turn()
    (exercise, answers), *others = judge.judged
    assert others == []
    assert any(check.hidden for check in find(EXERCISE, hidden=True).checks)
    assert not any(check.hidden for check in exercise.checks)
    assert list(answers) == [EXERCISE]
    reply = reply_to(name)
    assert reply.record is not None
    assert (reply.record.points, reply.record.status) == (2.0, ExerciseStatus.GRADED)
    assert reply.sentence == "Checked on the course's machine (device cpu)."
    assert names(places.inbound) == names(places.taken / "machine") == set()


def test_a_trial_draws_inputs_from_a_fresh_seed_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(serve_command, "grade_exercise", lambda *_, seed, **__: seeds.append(seed))
    monkeypatch.setattr(serve_command, "new_seed", iter((11, 12)).__next__)
    for _ in range(2):
        serve_command._judged(find(EXERCISE), {}, object())  # type: ignore[arg-type]  # the judge is not called

    assert seeds == [11, 12]


def test_what_no_exercise_needs_is_not_given_to_the_judge(places: Places, start: Start, judge: Judge) -> None:
    put(places, request_bytes(TrialRequest(EXERCISE, {EXERCISE: "x = 1", "01_scaled_dot_product": "y", "../x": "z"})))
    start().turn()

    assert [list(answers) for _, answers in judge.judged] == [[EXERCISE]]


def test_an_unknown_exercise_gets_a_sentence(places: Places, start: Start, judge: Judge, reply_to: ReplyTo) -> None:
    name = put(places, request_bytes(TrialRequest("../../etc/passwd", {"x": ""})))
    start().turn()

    assert judge.judged == []
    assert reply_to(name).record is None
    assert "No exercise is called '../../etc/passwd'" in reply_to(name).sentence


def test_a_fault_of_the_grader_is_told_without_its_text(
    places: Places, start: Start, reply_to: ReplyTo, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> Any:
        raise LookupError("a secret of the course")

    name, at_work = put(places), start()
    at_work.judge = broken
    at_work.turn()

    assert reply_to(name) == TrialReply(FAULT)
    assert "a secret of the course" in capsys.readouterr().err


@as_root
def test_turns_go_round_and_a_student_waits_between_two(places: Places, start: Start, judge: Judge) -> None:
    now = [0.0]
    at_work = start(every_s=60.0, clock=lambda: now[0])
    for number in range(3):
        put(places, request_bytes(TrialRequest(EXERCISE, {EXERCISE: f"mallory {number}"})), owner=MALLORY)
    turns = [at_work.turn()]
    put(places, request_bytes(TrialRequest(EXERCISE, {EXERCISE: "alice"})), owner=ALICE)
    for now[0] in (1.0, 2.0, 59.0, 60.0, 61.0, 120.0, 180.0):
        turns.append(at_work.turn())

    assert turns == [True, True, False, False, True, False, True, False]
    assert [answers[EXERCISE].split()[0] for _, answers in judge.judged] == ["mallory", "alice", "mallory", "mallory"]


@as_root
def test_a_flood_of_one_student_delays_nobody(places: Places, start: Start, judge: Judge) -> None:
    at_work = start()
    for _ in range(2_000):
        put(places, b"flood", owner=MALLORY)
    name = put(places, owner=ALICE)
    at_work.turn()
    at_work.turn()

    assert (places.replies / name).is_file()
    assert len(judge.judged) == 1
    assert len(names(places.inbound)) <= 3, "of one user at most four wait"
    assert len(names(places.replies)) <= 2, "what is too much gets no reply, which would fill the disk"


def test_what_waits_too_long_is_dropped(places: Places, start: Start, judge: Judge) -> None:
    now = [0.0]
    at_work = start(every_s=60.0, clock=lambda: now[0])
    for _ in range(2):
        put(places)
    at_work.turn()
    now[0] = 30.0
    at_work.turn()
    now[0] = 700.0
    at_work.turn()

    assert len(judge.judged) == 1
    assert names(places.inbound) == set()


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Work in a process that is killed at its `step`th call that changes a file; return whether it was."""
    child = os.fork()
    if child == 0:
        left = [step]
        for name in ("rename", "unlink", "fsync", "setxattr"):
            setattr(os, name, counting(getattr(os, name), left))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def counting(call: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    """Return `call` that kills its process when `left` calls were made."""

    def counted(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **options)

    return counted


def test_a_server_that_is_killed_at_any_step_goes_on_where_it_was(
    places: Places, start: Start, reply_to: ReplyTo
) -> None:
    steps = 0
    for step in range(20):
        name = put(places)
        first = start()
        if not killed_at(step, first.turn):
            break
        steps += 1
        second = start()
        second.resume()
        while second.turn():
            pass
        assert reply_to(name).record is not None, f"killed at step {step}"
        assert names(places.inbound) == names(places.taken / "machine") == set()

    assert steps >= 4, "taken, written, in its place, forgotten"


def test_a_request_during_which_servers_end_is_given_up(places: Places, start: Start, reply_to: ReplyTo) -> None:
    def end(*_: object) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    name = put(places)
    for attempt in range(2):
        at_work = start()
        at_work.judge = end
        assert killed_at(1_000, at_work.turn if attempt == 0 else at_work.resume)
    start().resume()

    assert reply_to(name) == TrialReply(GIVEN_UP)
    assert names(places.taken / "machine") == set()


def test_a_full_disk_costs_no_reply(
    places: Places, start: Start, judge: Judge, reply_to: ReplyTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, at_work = put(places), start()
    with monkeypatch.context() as patch:
        patch.setattr("autograder.host.spool.private_files.os.fsync", failing(errno.ENOSPC))
        at_work.turn()
        assert names(places.replies) == set(), "no part of a reply either"
    at_work.turn()

    assert reply_to(name).record is not None
    assert len(judge.judged) == 1
    assert names(places.taken / "machine") == set()


def test_an_exchange_that_cannot_be_used_for_a_while_ends_nothing(
    places: Places, start: Start, reply_to: ReplyTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, at_work = put(places), start()
    with monkeypatch.context() as patch:
        patch.setattr(server.os, "rename", failing(errno.EROFS))
        serve_command.serve(at_work, until_empty=True)
    serve_command.serve(at_work, until_empty=True)

    assert vars(at_work)["said"][0] == "the exchange cannot be used now: Read-only file system"
    assert reply_to(name).record is not None


def failing(number: int) -> Callable[..., Any]:
    """Return a call that fails with this error of the system."""

    def fail(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def test_old_replies_are_removed(places: Places, start: Start) -> None:
    name, at_work = put(places), start()
    at_work.turn()
    os.utime(places.replies / name, (0, 0))
    at_work._tidied_s = float("-inf")
    at_work.turn()

    assert names(places.replies) == set()


def test_a_name_serves_once(places: Places, start: Start, reply_to: ReplyTo) -> None:
    name, at_work = put(places), start()
    at_work.turn()
    before = (places.replies / name).read_bytes()
    put(places, REQUEST.replace(b"04_read_a_graph", b"04_read_a_grape"), name=name)
    at_work.turn()

    assert (places.replies / name).read_bytes() == before
    assert names(places.taken / "machine") == set()
