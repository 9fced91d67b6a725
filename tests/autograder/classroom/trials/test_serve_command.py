"""`autograder serve-trials` as it is typed: a real judge, one server a device, the board's switch, the sign of life."""

import os
import re
import shlex
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.classroom import cli
from autograder.classroom.status import WRONG_USAGE, CommandError
from autograder.classroom.trials import serve_command
from autograder.classroom.trials.server import TrialServer
from autograder.host.records import ExerciseStatus
from autograder.host.spool import Places, TrialReply, TrialRequest, opened_folder, request_bytes
from tests.architecture.source_tree import ROOT
from tests.autograder.classroom.trials.students import EXERCISE, put

HALF = """\
def read_graph(rows):
    inputs = [row["name"] for row in rows if row["op"] == "placeholder"]
    return {"inputs": inputs, "leaf_modules": [], "two_users": [], "dead": [], "longest_path": 0}
"""


def test_the_command_judges_as_the_check_in_a_notebook_does_and_writes_a_board_only_if_told(
    places: Places,
    reply_to: Callable[[str], TrialReply],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COURSE_WORK", str(tmp_path))
    name = put(places, request_bytes(TrialRequest(EXERCISE, {EXERCISE: HALF})))
    assert cli.main(["serve-trials", "--until-empty", "--board"]) == 0
    reply = reply_to(name)

    assert reply.record is not None
    assert (reply.record.points, reply.record.status) == (0.5, ExerciseStatus.GRADED)
    assert not any(check.hidden for check in reply.record.checks)
    assert f"teacher: {EXERCISE}, 0.5 of 3.5 points" in capsys.readouterr().out
    assert places.board.is_file()
    assert cli.main(["serve-trials", "--until-empty"]) == 0
    assert not places.board.exists()


def test_trials_are_not_served_without_a_sandbox(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COURSE_WORK", str(tmp_path))

    assert cli.main(["serve-trials", "--until-empty", "--sandbox", "5", "--i-trust-this-code"]) == WRONG_USAGE


def test_a_device_of_a_machine_has_one_server(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_command, "LOCK_S", 0.1)
    with serve_command._opened(places, "/dev/nvidia0"):
        with pytest.raises(CommandError, match="another server works off trials on /dev/nvidia0"):
            serve_command._opened(places, "/dev/nvidia0").__enter__()
        with serve_command._opened(places, "/dev/nvidia1"):
            pass


def test_what_a_server_of_another_name_had_taken_is_worked_off(places: Places) -> None:
    for name in ("ended+cpu", "running+cpu"):
        (places.taken / name).mkdir()
        (places.taken / name / f"1.{name[0] * 32}.1").touch()
    running = opened_folder(places.taken / "running+cpu", listed=True)
    assert serve_command._locked(running)
    with serve_command._opened(places, "cpu") as (_, taken, *_):
        assert os.listdir(taken) == [f"1.{'e' * 32}.1"]  # noqa: PTH208  # an open folder
    assert len(list((places.taken / "running+cpu").iterdir())) == 1
    os.close(running)


def test_a_sign_of_life_is_given_until_a_trial_hangs(
    places: Places, start: Callable[..., TrialServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(serve_command, "SIGN_S", 0.01)
    monkeypatch.setattr(serve_command, "LIMIT_S", 10.0)
    monkeypatch.setattr(serve_command.os, "_exit", lambda _: ended.set())
    at_work = start()
    places.serving.touch()
    os.utime(places.serving, (0, 0))
    sign = os.open(places.serving, os.O_WRONLY)
    with serve_command._signs(at_work, sign):
        while not places.serving.stat().st_mtime:
            ended.wait(0.01)
        assert not ended.is_set()
        at_work.busy_since_s = float("-inf")
        assert ended.wait(10)
    os.close(sign)


def test_the_guide_types_a_command_that_exists() -> None:
    guide = (ROOT / "docs" / "instructor.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if "serve-trials" in block]
    _, *arguments = shlex.split(block)
    options = cli._parser().parse_args(arguments)

    assert (options.run, options.device) == (serve_command._run, "cuda")
    for option in re.findall(r"`(--(?:every|board)[^`]*)`", guide):
        cli._parser().parse_args([*arguments, *option.replace("SECONDS", "60").split()])
