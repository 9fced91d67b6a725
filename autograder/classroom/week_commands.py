"""`autograder open NOTEBOOK` and `autograder close NOTEBOOK`: hand a notebook out, and take it in when it is due.

`open` releases it and puts it into the exchange. `close` collects from the exchange and grades as `autograder batch`
does, with feedback, report and marks. It refuses while somebody may still hand in, unless `--yes` is given.

Each step is printed before it begins; `--dry-run` prints only. A command that was killed can be run again: what is done
is not done twice.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.classroom.batch import LocalEngine
from autograder.classroom.batch_command import going_on, grade_and_tell
from autograder.classroom.hand_in import folders_handed_in
from autograder.classroom.sandbox_options import add_sandbox, open_chosen
from autograder.classroom.status import DONE, REFUSED, CommandError
from autograder.classroom.term.due_dates import due_in, shown_in
from autograder.classroom.term.lateness import DAY_S, GRACE_S

if TYPE_CHECKING:
    from autograder.classroom.nbgrader.course import Course

MOST_NAMES = 12  # of students in one sentence


class StillOpenError(CommandError):
    """Somebody may still hand in."""

    exit_code = REFUSED


@dataclass(frozen=True)
class Step:
    """One step: what is printed before it, and what it does; a status other than 0 ends the command."""

    words: str
    do: Callable[[], int]


def add_week(commands: Any) -> None:
    """Add both commands to the command line's `commands`."""
    style = argparse.RawDescriptionHelpFormatter
    opening = commands.add_parser("open", help="hand out a notebook", description=__doc__, formatter_class=style)
    closing = commands.add_parser(
        "close", help="collect and grade a notebook", description=__doc__, formatter_class=style
    )
    for command in (opening, closing):
        command.add_argument("assignment", metavar="NOTEBOOK")
        command.add_argument("--dry-run", action="store_true", help="print the steps only")
    closing.add_argument("--yes", action="store_true", help="also while somebody may still hand in")
    add_sandbox(closing)
    opening.set_defaults(run=_open)
    closing.set_defaults(run=_close)


def _open(options: argparse.Namespace) -> int:
    from autograder.classroom.nbgrader.course import open_course
    from autograder.classroom.nbgrader.release import release

    course = open_course()
    (name,) = course.chosen([options.assignment])
    released = course.release / name / f"{name}.ipynb"

    def build() -> int:
        release(course, [name])
        return DONE

    def hand_out() -> int:
        course.api.config.ExchangeReleaseAssignment.force = True  # a second run replaces what the first one put there
        course.do("release_assignment", name)
        return DONE

    steps = [
        Step(f"Release it, without solutions: autograder release {name}", build),
        Step(f"Put it into the exchange: nbgrader release_assignment {name}", hand_out),
    ]
    status = _each(steps, options.dry_run)
    with course.gradebook() as gradebook:
        due = due_in(gradebook, course.rules(), name)
    until = shown_in(due, course.rules(), name) if due else "no date; set one below [due] in course.toml"
    print(f"due        {until}")
    print(f"students   find it in JupyterLab's Assignment List; on a learning platform, upload {released}")
    print(f"next       when it is due: autograder close {name}")
    return status


def _close(options: argparse.Namespace) -> int:
    from autograder.classroom.nbgrader.course import open_course

    course = open_course()
    (name,) = course.chosen([options.assignment])
    now = datetime.now(UTC).replace(tzinfo=None)
    waiting = "; ".join(still_open(course, name, now))
    if waiting:
        print(f"Still allowed to hand in {name}: {waiting}.")
        if not (options.yes or options.dry_run):
            raise StillOpenError(
                "nothing was done. With --yes it is closed now; run it again for students who hand in later."
            )

    def grade() -> int:
        if not folders_handed_in(course.submitted, [name]):
            print(f"Nobody has handed in {name}.")
            return DONE
        with going_on():
            return grade_and_tell(course, [name], LocalEngine(open_chosen(options)))

    steps = [
        Step(f"Collect from the exchange: nbgrader collect {name}", lambda: _collect(course, name)),
        Step(f"Grade, with marks, feedback and report: autograder batch --assignment {name}", grade),
    ]
    status = _each(steps, options.dry_run)
    if again := late_until(course, name, now):
        print(again)
    return status


def _collect(course: "Course", name: str) -> int:
    inbound = Path(course.api.config.Exchange.root, course.api.coursedir.course_id, "inbound")
    if not inbound.is_dir():
        print(f"The exchange has no folder {inbound}; what lies in {course.submitted} is graded.")
        return DONE
    print(course.do("collect", name).strip())
    return DONE


def still_open(course: "Course", name: str, now: datetime) -> Iterator[str]:
    """Yield who may still hand in at `now`, in UTC: everybody before the due date, then who has an extension."""
    from autograder.classroom.nbgrader.extensions import deadlines

    due, ends = deadlines(course, name)
    if due is not None and now <= due:
        yield f"everybody, until {shown_in(due, course.rules(), name)}"
    later = {who: end for who, end in ends.items() if due and end > max(due, now)}
    for who in sorted(later)[:MOST_NAMES]:
        yield f"{who}, until {shown_in(later[who], course.rules(), name)}"
    if len(later) > MOST_NAMES:
        yield f"and {len(later) - MOST_NAMES} more"


def late_until(course: "Course", name: str, now: datetime) -> str:
    """Return a sentence about the time, in UTC, until which a late hand-in earns points; empty if it is over."""
    from autograder.classroom.nbgrader.extensions import deadlines

    due, ends = deadlines(course, name)
    rules = course.rules()
    if due is None or rules.late is None or not rules.late.days:
        return ""
    last = max(due, *ends.values()) if ends else due
    last += timedelta(seconds=rules.late.days * DAY_S + GRACE_S)
    if last <= now:
        return ""
    until = shown_in(last, rules, name)
    return f"Late hand-ins earn points until {until}; run `autograder close {name}` again then."


def _each(steps: Sequence[Step], dry_run: bool) -> int:
    """Print and do each step; return the first status that is not 0."""
    for number, step in enumerate(steps, start=1):
        print(f"step {number} of {len(steps)}  {step.words}", flush=True)
        status = DONE if dry_run else step.do()
        if status:
            return status
    return DONE
