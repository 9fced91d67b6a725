"""`autograder serve-trials`: check answers that students send from their notebooks, on this machine's device.

It takes requests out of nbgrader's exchange folder, runs the visible checks in the sandbox and measures the speed, one
answer at a time, and leaves replies there. It listens on no network. It can be killed and started again at any time.
Trials count for no marks.
"""

import argparse
import contextlib
import fcntl
import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autograder.classroom.sandbox_options import add_sandbox, open_chosen
from autograder.classroom.status import DONE, OUR_FAILURE, CommandError, UsageError
from autograder.classroom.trials.board import Board
from autograder.classroom.trials.inbox import Inbox
from autograder.classroom.trials.server import TrialServer
from autograder.host.exercise import Exercise
from autograder.host.grading import grade_exercise, new_seed
from autograder.host.records import ExerciseRecord
from autograder.host.sandbox import Sandbox
from autograder.host.sandbox.levels import Level
from autograder.host.spool import Places, doubts, opened_folder
from autograder.host.spool.places import FOLDER_MODES

POLL_S = 1.0
SIGN_S = 2.0
LOCK_S = 2.0  # another server that starts looks into this one's folder for a moment
LIMIT_S = 900.0  # for one trial; sessions have limits of their own, which add up to minutes


def add_serve_trials(commands: Any) -> None:
    """Add the command to the command line's `commands`."""
    style = argparse.RawDescriptionHelpFormatter
    serve = commands.add_parser(
        "serve-trials", help="check answers that students send", description=__doc__, formatter_class=style
    )
    told = "a student's next trial begins so long after the last one at the earliest; 60 by default"
    serve.add_argument("--every", type=float, default=60.0, metavar="SECONDS", help=told)
    serve.add_argument("--board", action="store_true", help="show the best ratios to all students, under pseudonyms")
    serve.add_argument("--until-empty", action="store_true", help="end when nothing waits")
    add_sandbox(serve)
    serve.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from autograder.classroom.nbgrader.course import open_course

    if not options.every >= 0:
        raise UsageError(f"--every was given {options.every}; it expects 0 or more seconds.")
    course = open_course()
    places = Places(Path(course.api.config.Exchange.root), course.api.coursedir.course_id)
    make_folders(places)
    board = Board(course.journal.with_name("board.jsonl"), places.board, course.seed_file)
    if options.board:
        board.write()
    else:
        places.board.unlink(missing_ok=True)
    sandbox = open_chosen(options)
    if sandbox.level == Level.NONE:
        raise UsageError("nobody has read what students send to trials, so they need a sandbox; there is none here.")
    with _opened(places, sandbox.device_name) as (inbound, taken, replies, sign):
        server = TrialServer(
            Inbox(inbound, places.inbound, options.every, say=_say),
            taken,
            replies,
            lambda exercise, answers: _judged(exercise, answers, sandbox),
            f"device {Path(sandbox.device_name).name}, sandbox level {sandbox.level}",
            board if options.board else None,
            say=_say,
        )
        _say(f"trials of {places.trials} on {server.where}; Ctrl-C ends it, what waits is kept")
        with _signs(server, sign), contextlib.suppress(KeyboardInterrupt):
            serve(server, until_empty=options.until_empty)
    return DONE


def _judged(exercise: Exercise, answers: Mapping[str, str], sandbox: Sandbox) -> ExerciseRecord:
    """Return the record of a trial: inputs come from a fresh seed, never from the course's."""
    return grade_exercise(exercise, answers, sandbox=sandbox, seed=new_seed(), show_speed=True)


def serve(server: TrialServer, *, until_empty: bool = False) -> None:
    """Work off requests until the process ends, or nobody's turn has come; an unreadable exchange is tried again."""
    server.resume()
    failed = ""
    while True:
        try:
            worked, now = server.turn(), ""
        except OSError as error:
            worked, now = False, f"the exchange cannot be used now: {error.strerror or error}"
        if now and now != failed:
            server.say(now)
        failed = now
        if not worked:
            if until_empty:
                return
            time.sleep(POLL_S)


def make_folders(places: Places) -> None:
    """Make the folders of trials that are missing; raises `CommandError` if others could change them."""
    course = places.exchange / places.course
    try:
        course.mkdir(mode=0o755, exist_ok=True)
        mode = places.exchange.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            places.exchange.chmod(stat.S_IMODE(mode) | stat.S_ISVTX)  # else anybody can rename the course's folder
        if course.stat().st_uid not in (os.geteuid(), places.exchange.stat().st_uid):
            raise CommandError(f"{course} belongs to another account; serve trials from the one that releases.")
        for name, needed in FOLDER_MODES.items():
            with contextlib.suppress(FileExistsError):
                (places.trials / name).mkdir(mode=0o700)  # closed, so that nobody opens it before it has its mode
                (places.trials / name).chmod(needed)
        found = list(doubts(places))
    except OSError as error:
        raise CommandError(f"the exchange {places.exchange} cannot be used: {error.strerror or error}.") from None
    if found:
        raise CommandError(f"trials are not safe: {found[0]}. Mend it, or remove {places.trials}, and start again.")


@contextlib.contextmanager
def _opened(places: Places, device: str) -> Iterator[tuple[int, int, int, int]]:
    """Open inbox, taken requests, replies and the sign; raises `CommandError` if another server has the device."""
    mine = places.taken / f"{socket.gethostname()}+{Path(device).name}"
    mine.mkdir(mode=0o700, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folders = [opened_folder(path, listed=True) for path in (places.inbound, mine, places.replies)]
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        folders.append(os.open(places.serving, flags, 0o644))
        for each in folders:
            stack.callback(os.close, each)
        if not _locked(folders[1], LOCK_S):
            raise CommandError(f"another server works off trials on {device} of this machine.")
        inherit(places.taken, mine, folders[1])
        os.fchmod(folders[3], 0o644)
        inbound, taken, replies, sign = folders
        yield inbound, taken, replies, sign


def _locked(folder: int, wait_s: float = 0.0) -> bool:
    """Lock an open folder until it is closed or its process ends; return False if another process has the lock."""
    until_s = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until_s:
                return False
            time.sleep(POLL_S / 10)
        else:
            return True


def inherit(taken: Path, mine: Path, to: int) -> None:
    """Move to the open folder `mine` what ended servers had taken, also those of a container with another name."""
    for folder in taken.iterdir():
        if folder == mine:
            continue
        opened = opened_folder(folder, listed=True)
        try:
            for name in os.listdir(opened) if _locked(opened) else ():  # noqa: PTH208  # an open folder
                os.rename(name, name, src_dir_fd=opened, dst_dir_fd=to)
        finally:
            os.close(opened)


@contextlib.contextmanager
def _signs(server: TrialServer, sign: int) -> Iterator[None]:
    """Change the time of the file `sign` every few seconds, and end the process if a trial hangs."""
    stopped = threading.Event()

    def give() -> None:
        while not stopped.wait(SIGN_S):
            since_s = server.busy_since_s
            if since_s is not None and time.monotonic() - since_s > LIMIT_S:
                _say(f"a trial took more than {LIMIT_S:.0f} s, so a step of the grader hangs; start the command again.")
                os._exit(OUR_FAILURE)
            with contextlib.suppress(OSError):
                os.utime(sign)

    thread = threading.Thread(target=give, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True, file=sys.stdout)
