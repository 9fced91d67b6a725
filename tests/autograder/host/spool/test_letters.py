"""Requests and replies cross as they were, whatever numbers a record holds, and nothing else is a letter."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.host.records import (
    CheckRecord,
    CheckStatus,
    CountedCost,
    ExerciseRecord,
    ExerciseStatus,
    SpeedRecord,
    SpeedVerdict,
)
from autograder.host.spool import (
    NotALetterError,
    TrialReply,
    TrialRequest,
    opened_folder,
    read_bounded,
    read_reply,
    read_request,
    reply_bytes,
    request_bytes,
    write_for,
)

SPEED = SpeedRecord(
    SpeedVerdict.SHOWN, "because", 1.5, 1, 2, 9, 1, 10.0, 15, 1.3, 1.65, 2, "cpu", ("a flag",), CountedCost(1, 24)
)
CHECK = CheckRecord("a check", "values", False, CheckStatus.FAILED, 1, 2, "<b>half a \ud800 pair</b>")
RECORD = ExerciseRecord(
    "05_bias_silu_pass", "graph", 1, 2, ExerciseStatus.GRADED, "", (CHECK,), {"launches": 1}, {}, SPEED, cap="a cap"
)


def test_a_request_crosses_as_it_was() -> None:
    request = TrialRequest("05_bias_silu_pass", {"05_bias_silu_pass": "x = '\ud800\\n'", "other": ""})

    assert read_request(request_bytes(request)) == request


@pytest.mark.parametrize("record", [None, RECORD, replace(RECORD, speed=None, checks=(), status="timed_out")])
def test_a_reply_crosses_as_it_was(record: ExerciseRecord | None) -> None:
    reply = read_reply(reply_bytes(TrialReply("Said.", record)))

    assert reply == TrialReply("Said.", record)
    assert record is None or (reply.record is not None and type(reply.record.status) is ExerciseStatus)
    assert record is None or (reply.record is not None and type(reply.record.points) is float)


@pytest.mark.parametrize(
    ("of", "into"),
    [
        (b'"status":"graded"', b'"status":"passed"'),
        (b'"points":1.0,"max_points":2.0,"status"', b'"points":9.0,"max_points":2.0,"status"'),
        (b'"hidden":false', b'"hidden":"no!"'),
        (b'"pairs":9', b'"pears":9'),
        (b'"ratio":1.5', b'"ratio":NaN'),
        (b'"sentence":"Said."', b'"sentence":null   '),
        (b'"record":{"id"', b'"record":["id"'),
    ],
)
def test_a_reply_with_anything_else_in_it_is_refused(of: bytes, into: bytes) -> None:
    data = reply_bytes(TrialReply("Said.", RECORD))
    assert of in data
    with pytest.raises(NotALetterError, match="it holds"):
        read_reply(data.replace(of, into))


def test_a_request_is_no_reply() -> None:
    with pytest.raises(NotALetterError):
        read_reply(request_bytes(TrialRequest("x", {"x": ""})))


def test_without_access_lists_a_file_is_open_to_whoever_knows_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    folder = opened_folder(tmp_path)
    write_for(folder, "mine", b"1", os.geteuid())
    write_for(folder, "theirs", b"2", os.geteuid() + 1)
    monkeypatch.setattr(os, "setxattr", refused)
    write_for(folder, "everybodys", b"3", os.geteuid() + 1)

    modes = {path.name: f"{path.stat().st_mode & 0o777:o}" for path in tmp_path.iterdir()}
    assert modes == {"mine": "600", "theirs": "640", "everybodys": "644"}
    assert read_bounded(folder, "theirs", 1) == (b"2", os.geteuid())
    os.close(folder)


def test_a_folder_that_is_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(NotADirectoryError):
        opened_folder(tmp_path / "link")
