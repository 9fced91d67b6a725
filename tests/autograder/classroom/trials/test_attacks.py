"""What a student may put into the exchange, or try to do to others' letters there: each gains nothing."""

import errno
import fcntl
import itertools
import json
import os
import signal
import stat
import struct
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.classroom.status import CommandError
from autograder.classroom.trials.serve_command import make_folders
from autograder.classroom.trials.server import TrialServer
from autograder.host.spool import Places, TrialReply, TrialRequest, request_bytes, write_for
from tests.autograder.classroom.trials.conftest import Judge
from tests.autograder.classroom.trials.students import (
    ALICE,
    EXERCISE,
    MALLORY,
    REQUEST,
    as_root,
    doing_as,
    names,
    put,
)

Start = Callable[..., TrialServer]
NAME = "f" * 32


def body(text: bytes) -> bytes:
    """Return a letter with this body and no tensors."""
    return struct.pack("<I", len(text)) + text + struct.pack("<I", 0)


def plain(**changes: object) -> bytes:
    """Return a request in which some entries are others."""
    entries = {"form": "fusion-course/trial/1", "exercise": EXERCISE, "answers": {EXERCISE: "x = 1"}}
    return body(json.dumps(entries | changes).encode())


def link(places: Places, secret: Path) -> None:
    (places.inbound / NAME).symlink_to(secret)


def second_name(places: Places, secret: Path) -> None:
    (places.inbound / NAME).hardlink_to(secret)


def pipe(places: Places, _: Path) -> None:
    os.mkfifo(places.inbound / NAME)


def sparse(places: Places, _: Path) -> None:
    with (places.inbound / NAME).open("wb") as file:
        file.truncate(1 << 40)


def folder(places: Places, _: Path) -> None:
    (places.inbound / NAME).mkdir()


def link_to_a_device(places: Places, _: Path) -> None:
    (places.inbound / NAME).symlink_to("/dev/zero")


@pytest.mark.parametrize(
    "attack", [link, second_name, pipe, sparse, folder, link_to_a_device], ids=lambda a: a.__name__
)
def test_what_is_no_plain_file_is_removed_unread(
    places: Places, start: Start, judge: Judge, attack: Callable[[Places, Path], None]
) -> None:
    secret = places.exchange / "secret"
    secret.write_bytes(REQUEST)
    attack(places, secret)
    began_s = time.monotonic()

    assert not start().turn()
    assert time.monotonic() - began_s < 2
    assert judge.judged == []
    assert names(places.inbound) == names(places.replies) == set()
    assert secret.read_bytes() == REQUEST


@pytest.mark.parametrize(
    "data",
    [
        b"",
        REQUEST[:50],
        REQUEST + b"more",
        body(b"[" * 100_000 + b"]" * 100_000),
        body(b'{"a":' * 5_000 + b"1" + b"}" * 5_000),
        body(b'{"exercise": "x", "exercise": "y"}'),
        plain(student="alice"),
        plain(answers={}),
        plain(answers={EXERCISE: 7}),
        plain(answers={EXERCISE: "x" * 200_001}),
        plain(answers={f"exercise {number}": "" for number in range(11)}),
        plain(exercise="e" * 101),
        plain(form="fusion-course/trial/2"),
        plain(exercise=None),
        struct.pack("<I", 1 << 31) + b"{}",
        json.dumps({"exercise": EXERCISE}).encode("utf-16"),
    ],
    ids=lambda data: f"{len(data)} bytes",
)
def test_what_is_no_request_gets_a_sentence_and_no_judge(
    places: Places, start: Start, judge: Judge, reply_to: Callable[[str], TrialReply], data: bytes
) -> None:
    name = put(places, data)
    start().turn()

    assert judge.judged == []
    assert reply_to(name).record is None
    assert "could not read this trial" in reply_to(name).sentence


def test_a_letter_that_is_replaced_between_look_and_reading_is_refused(
    places: Places, start: Start, judge: Judge, reply_to: Callable[[str], TrialReply]
) -> None:
    secret = places.exchange / "secret"
    secret.write_bytes(REQUEST)
    at_work, name = start(), put(places)
    at_work.inbox.look()
    (places.inbound / name).unlink()
    (places.inbound / name).symlink_to(secret)
    waiting = at_work.inbox.next()
    assert waiting is not None
    taken = at_work._take(waiting)
    assert taken is not None
    at_work._work_off(taken)

    assert judge.judged == []
    assert reply_to(name).sentence.endswith("it is not a regular file.")
    assert secret.read_bytes() == REQUEST


@as_root
def test_a_letter_that_is_another_users_by_now_is_refused(places: Places, start: Start, judge: Judge) -> None:
    at_work, name = start(), put(places, owner=ALICE)
    at_work.inbox.look()
    (places.inbound / name).unlink()
    put(places, owner=MALLORY, name=name)
    waiting = at_work.inbox.next()
    assert waiting is not None
    taken = at_work._take(waiting)
    assert taken is not None
    at_work._work_off(taken)

    assert judge.judged == []


@as_root
def test_a_letter_that_cannot_be_moved_keeps_nobody_from_a_turn(
    places: Places, start: Start, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work, move = start(), os.rename
    put(places, owner=ALICE)
    at_work.turn()
    held, name = put(places, owner=MALLORY), put(places, owner=ALICE)

    def busy(source: str, *args: str, **options: int) -> None:
        if source == held:
            raise OSError(errno.EBUSY, "it is a mount point")
        move(source, *args, **options)

    monkeypatch.setattr("autograder.classroom.trials.server.os.rename", busy)
    with pytest.raises(OSError, match="mount point"):
        at_work.turn()
    at_work.turn()

    assert (places.replies / name).is_file()
    assert len(judge.judged) == 2


def test_a_file_that_grows_while_it_is_read_is_refused(
    places: Places,
    start: Start,
    judge: Judge,
    reply_to: Callable[[str], TrialReply],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, told = put(places, b"x" * 5_000_000), os.fstat
    at_work = start()
    monkeypatch.setattr("autograder.classroom.trials.inbox.MAX_REQUEST_BYTES", 1 << 40)

    def small(descriptor: int) -> os.stat_result:
        entries = list(told(descriptor))
        entries[stat.ST_SIZE] = 10
        return os.stat_result(entries)

    with monkeypatch.context() as patch:
        patch.setattr("autograder.host.spool.private_files.os.fstat", small)
        at_work.turn()

    assert judge.judged == []
    assert "it has more than 4,194,304 bytes" in reply_to(name).sentence


def test_a_lease_on_a_letter_does_not_keep_the_server_waiting(places: Places, start: Start, judge: Judge) -> None:
    name = put(places)
    held = os.open(places.inbound / name, os.O_RDWR)
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # tells the holder that somebody waits
    fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    began_s = time.monotonic()
    start().turn()

    assert time.monotonic() - began_s < 5, "the kernel would wait 45 seconds"
    os.close(held)
    signal.signal(signal.SIGIO, before)


@pytest.mark.parametrize("claimed_s", [0, 4_000_000_000])
def test_times_that_a_student_sets_change_nothing(
    places: Places, start: Start, judge: Judge, claimed_s: int, reply_to: Callable[[str], TrialReply]
) -> None:
    name = put(places)
    os.utime(places.inbound / name, (claimed_s, claimed_s))
    start().turn()

    assert reply_to(name).record is not None


@as_root
def test_a_user_without_an_account_gets_no_turn(places: Places, start: Start, judge: Judge) -> None:
    for uid in range(100_000, 100_020):  # as one student has them in a container
        put(places, owner=uid)

    assert not start().turn()
    assert judge.judged == []
    assert names(places.inbound) == set()


def test_names_that_are_no_letters_are_left_a_while_and_then_removed(
    places: Places, start: Start, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".part", "-rf", "x" * 200, "a\nb", NAME[:-1], NAME.upper()):
        (places.inbound / name).write_bytes(REQUEST)
    at_work = start()
    assert not at_work.turn()
    assert len(names(places.inbound)) == 6
    monkeypatch.setattr("autograder.classroom.trials.inbox.OTHERS_KEPT_S", -1.0)
    at_work.turn()

    assert judge.judged == []
    assert names(places.inbound) == set()


def test_a_folder_that_cannot_be_removed_is_passed_by(places: Places, start: Start, judge: Judge) -> None:
    (places.inbound / NAME / "inside").mkdir(parents=True)
    (places.inbound / "other" / "inside").mkdir(parents=True)
    put(places)

    assert start().turn()
    assert len(judge.judged) == 1


def test_many_folders_that_cannot_be_removed_take_no_time(
    places: Places, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    for number in range(20):
        (places.inbound / f"{number:032x}" / "inside").mkdir(parents=True)
    put(places, name=NAME)
    monkeypatch.setattr("autograder.classroom.trials.inbox.OTHERS_KEPT", 3)
    for call in ("rmdir", "unlink"):
        monkeypatch.setattr(f"autograder.classroom.trials.inbox.os.{call}", lambda name, **_: tried.append(name))
    at_work = start()
    at_work.inbox.look()

    assert len(tried) == 3
    assert at_work.inbox.next() is not None


def test_folders_that_end_no_look_are_put_aside_with_the_name_of_their_owner(
    places: Places, start: Start, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work, beside = start(), start()
    put(places)
    at_work.inbox.look()
    for number in range(300):
        (places.inbound / f"folder {number}" / "inside").mkdir(parents=True)
    monkeypatch.setattr("autograder.classroom.trials.inbox.OTHERS_KEPT", 10)
    ticks = itertools.count()
    late = SimpleNamespace(monotonic=lambda: next(ticks) / 10, time=time.time, time_ns=time.time_ns)
    monkeypatch.setattr("autograder.classroom.trials.inbox.time", late)  # a look ends after some fifty entries
    assert at_work.turn()  # with the request that was found before

    (line,) = [line for line in vars(at_work)["said"] if "kept trials" in line]
    assert "of the first 10 by owner: teacher (10)" in line
    assert names(places.inbound) == set()
    assert len(list(next(places.trials.glob("aside-*")).iterdir())) == 300
    assert stat.S_IMODE(next(places.trials.glob("aside-*")).stat().st_mode) == 0o700
    make_folders(places)  # finds nothing to doubt
    for server in (at_work, beside):
        put(places)
        assert server.turn()
    assert len(judge.judged) == 3


@as_root
def test_no_student_reads_lists_or_removes_what_is_anothers(places: Places, start: Start) -> None:
    def send() -> None:
        opened = os.open(places.inbound, os.O_PATH)
        write_for(opened, NAME, REQUEST, places.inbound.stat().st_uid)

    def read(path: Path) -> Callable[[], object]:
        return lambda: path.read_bytes() == REQUEST or len(path.read_bytes()) > 100

    request, reply = places.inbound / NAME, places.replies / NAME
    assert doing_as(ALICE, send) == "None"
    assert stat.S_IMODE(request.stat().st_mode) & stat.S_IRWXO == 0
    hostile: list[Callable[[], object]] = [
        read(request),
        request.unlink,
        lambda: request.rename(places.inbound / ("0" * 32)),
        lambda: names(places.inbound),
        lambda: names(places.replies),
        lambda: names(places.taken),
        lambda: (places.replies / ("1" * 32)).write_bytes(b""),
        lambda: places.inbound.rename(places.trials / "mine"),
        lambda: places.trials.rename(places.exchange / "mine"),
        lambda: places.trials.parent.rename(places.exchange / "mine"),
        lambda: os.utime(places.serving),
        lambda: (places.exchange / "linked").hardlink_to(request),
    ]
    places.serving.touch()
    assert [doing_as(MALLORY, act) for act in hostile] == ["PermissionError"] * len(hostile)
    assert doing_as(ALICE, read(request)) == "True"

    start().turn()
    assert doing_as(ALICE, read(reply)) == "True"
    assert doing_as(MALLORY, read(reply)) == "PermissionError", "even with its name"
    assert doing_as(ALICE, reply.unlink) == "PermissionError"


@as_root
def test_a_reply_goes_to_the_owner_of_the_file_whatever_the_text_says(places: Places, start: Start) -> None:
    text = request_bytes(TrialRequest(EXERCISE, {EXERCISE: f"# I am alice, uid {ALICE}\n"}))
    name = put(places, text, owner=MALLORY)
    start().turn()

    assert doing_as(MALLORY, (places.replies / name).read_bytes) != "PermissionError"
    assert doing_as(ALICE, (places.replies / name).read_bytes) == "PermissionError"


@as_root
def test_a_request_under_a_name_in_use_does_not_reach_that_reply(places: Places, start: Start) -> None:
    name, at_work = put(places, owner=ALICE), start()
    at_work.turn()
    before = (places.replies / name).read_bytes()
    put(places, REQUEST.replace(b"return {}", b"return 66"), owner=MALLORY, name=name)
    at_work.turn()

    assert (places.replies / name).read_bytes() == before
    assert doing_as(MALLORY, (places.replies / name).read_bytes) == "PermissionError"


def test_the_server_starts_only_where_nobody_can_replace_its_folders(places: Places) -> None:
    assert places.exchange.stat().st_mode & stat.S_ISVTX, "nbgrader's exchange is open to all; now it is sticky"
    make_folders(places)
    places.inbound.chmod(0o1777)
    with pytest.raises(CommandError, match=r"inbound is not a folder of mode 1733\. Mend it"):
        make_folders(places)
    places.inbound.rmdir()
    places.inbound.symlink_to(places.exchange)
    with pytest.raises(CommandError, match="inbound is not a folder"):
        make_folders(places)


@as_root
def test_the_server_does_not_use_a_course_folder_of_somebody_else(places: Places) -> None:
    os.chown(places.trials.parent, MALLORY, -1)
    with pytest.raises(CommandError, match="belongs to another account"):
        make_folders(places)


def test_an_exchange_that_cannot_be_written_is_one_sentence(places: Places) -> None:
    places.serving.touch()
    with pytest.raises(CommandError, match="cannot be used: Not a directory"):
        make_folders(Places(places.serving, "fusion-course"))
