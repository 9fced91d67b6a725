"""Hidden checks and controls of exercise 02.4."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.measuring import read_a_trace as visible
from autograder.exercises.measuring.read_a_trace import Event, Trace
from autograder.exercises.questions import Known
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values


def _overlapping(draw: Draw) -> list[visible.Trace]:
    return [visible.trace(draw, ranges, streams=2) for ranges in (3, 5)]


def _noisy(draw: Draw) -> list[visible.Trace]:
    return [visible.trace(draw, ranges, noise=True) for ranges in (4, 6)]


def kernels_of(rows: Trace) -> list[Event]:
    """Return the events that are kernels: complete ones, in the order of their start."""
    found = [e for e in rows["traceEvents"] if e.get("cat") == "kernel" and e["ph"] == "X"]
    return sorted(found, key=lambda e: int(e["ts"]))


def _totals(events: list[Event]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for event in events:
        totals[event["name"]] = totals.get(event["name"], 0) + event["dur"]
    return totals


def _first_of(totals: dict[str, int]) -> str:
    return max(sorted(totals), key=lambda name: totals[name])


def busy_us(events: list[Event], start: int, end: int) -> int:
    """Return the time between `start` and `end` during which at least one kernel runs."""
    busy, reached = 0, start
    for event in events:
        begin, stop = max(event["ts"], reached), min(event["ts"] + event["dur"], end)
        busy += max(stop - begin, 0)
        reached = max(reached, stop)
    return busy


def longest_gap_us(events: list[Event]) -> int:
    """Return the longest time without a kernel between the first and the last."""
    longest, reached = 0, events[0]["ts"]
    for event in events:
        longest = max(longest, event["ts"] - reached)
        reached = max(reached, event["ts"] + event["dur"])
    return longest


def truth(rows: Trace, part: str) -> Any:
    """Return the host's answer to one question."""
    events = kernels_of(rows)
    if part == "top_kernel":
        return _first_of(_totals(events))
    if part == "longest_gap_us":
        return longest_gap_us(events)
    ranges = [e for e in rows["traceEvents"] if e.get("cat") == "gpu_user_annotation"]
    ends = ((e["name"], e["ts"], e["ts"] + e["dur"]) for e in ranges)
    return sorted(name for name, start, end in ends if 2 * busy_us(events, start, end) < end - start)


def _longest_single(rows: Trace) -> str:
    return str(max(kernels_of(rows), key=lambda e: int(e["dur"]))["name"])


def _most_calls(rows: Trace) -> str:
    names = [e["name"] for e in kernels_of(rows)]
    return max(sorted(set(names)), key=names.count)


def _gap_between_neighbours(rows: Trace) -> int:
    events = kernels_of(rows)
    return int(max(b["ts"] - a["ts"] - a["dur"] for a, b in pairwise(events)))


def _gap_from_start_to_start(rows: Trace) -> int:
    events = kernels_of(rows)
    return int(max(b["ts"] - a["ts"] for a, b in pairwise(events)))


def _marks_too(rows: Trace) -> list[Event]:
    """Return the kernels, and the instant events of the same category as kernels without duration."""
    events = [e for e in rows["traceEvents"] if e.get("cat") == "kernel"]
    return sorted(({"dur": 0} | dict(e) for e in events), key=lambda e: int(e["ts"]))


def _gap_with_marks(rows: Trace) -> int:
    events = _marks_too(rows)
    return int(max(b["ts"] - a["ts"] - a["dur"] for a, b in pairwise(events)))


def _bound(rows: Trace, covered: Callable[[list[Event], int, int], int], percent: int = 50) -> list[str]:
    ranges = [e for e in rows["traceEvents"] if e.get("cat") == "gpu_user_annotation"]
    events = kernels_of(rows)
    shares = ((e["name"], covered(events, e["ts"], e["ts"] + e["dur"]) / e["dur"]) for e in ranges)
    return sorted(name for name, share in shares if 100 * share < percent)


def _between(events: list[Event], start: int, end: int) -> int:
    """Return the time of kernels, stretched as if the range ended with its last kernel."""
    inside = [e for e in events if start <= e["ts"] < end]
    last = max(e["ts"] + e["dur"] for e in inside)
    return busy_us(events, start, end) * (end - start) // (last - start)


def _of_one_stream(rows: Trace) -> list[Event]:
    return [e for e in kernels_of(rows) if e["tid"] == 7]


def _gap_in_one_stream(rows: Trace) -> int:
    return longest_gap_us(_of_one_stream(rows))


def _by_start(events: list[Event], start: int, end: int) -> int:
    return sum(e["dur"] for e in events if start <= e["ts"] < end)


def _added_up(events: list[Event], start: int, end: int) -> int:
    return sum(max(min(e["ts"] + e["dur"], end) - max(e["ts"], start), 0) for e in events)


ONE_STREAM = "Only the kernels of one stream were looked at; there are two, and either may run."


def _bound_by_one_stream(rows: Trace) -> list[str]:
    return _bound(rows, lambda events, start, end: busy_us(_of_one_stream(rows), start, end))


def _longest_of_all(rows: Trace) -> str:
    """Return the name with the most time among all events of the device but ranges."""
    events = [e for e in rows["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy") and e["ph"] == "X"]
    return _first_of(_totals(events))


def _gap_with_copies(rows: Trace) -> int:
    events = [e for e in rows["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy") and e["ph"] == "X"]
    return longest_gap_us(sorted(events, key=lambda e: int(e["ts"])))


COPIES = "A copy of memory is no kernel; kernels have the category kernel."
OVERLAP = "Kernels of two streams overlap: time in which two of them run counts once, so durations cannot be added up."


LATEST = "Kernels of two streams overlap: measure from the latest end so far, not the last."
MARKS = "Events of the category kernel without a duration are marks: take those whose `ph` is X."


MISCONCEPTIONS: dict[str, tuple[Misconception, ...]] = {
    "top_kernel": (
        Misconception(
            lambda rows: _first_of(_totals([e for e in rows["traceEvents"] if e.get("cat") == "cpu_op"])),
            "That is an operator on the host; kernels have the category kernel.",
        ),
        Misconception(_longest_single, "That is the longest single call; add up all calls of a name."),
        Misconception(_most_calls, "That is called most often; add up durations, not calls."),
        Misconception(_longest_of_all, COPIES),
    ),
    "longest_gap_us": (
        Misconception(_gap_from_start_to_start, "That is from start to start; a gap begins where a kernel ends."),
        Misconception(_gap_between_neighbours, LATEST),
        Misconception(_gap_in_one_stream, ONE_STREAM),
        Misconception(_gap_with_marks, MARKS),
        Misconception(lambda rows: longest_gap_us(_marks_too(rows)), MARKS),
        Misconception(_gap_with_copies, COPIES),
    ),
    "launch_bound": (
        Misconception(
            lambda rows: sorted({e["name"] for e in rows["traceEvents"] if e.get("cat") == "gpu_user_annotation"}),
            "Those are all ranges; in some of them kernels run for more than half of the time.",
        ),
        Misconception(
            lambda rows: sorted(
                {e["name"] for e in rows["traceEvents"] if e.get("cat") == "gpu_user_annotation"}
                - set(truth(rows, "launch_bound"))
            ),
            "It is the other way round: launch-bound is where kernels run for less than half of the time.",
        ),
        Misconception(lambda rows: _bound(rows, _by_start), OVERLAP),
        Misconception(lambda rows: _bound(rows, _added_up), OVERLAP),
        Misconception(lambda rows: _bound(rows, busy_us, 60), f"{visible.LIMIT}, and this one is above it."),
        Misconception(lambda rows: _bound(rows, busy_us, 43), f"{visible.LIMIT}, and this one is below it."),
        Misconception(
            lambda rows: _bound(rows, _between), f"{visible.LIMIT}, which goes on after its last kernel has ended."
        ),
        Misconception(_bound_by_one_stream, ONE_STREAM),
    ),
}


def known(rows: Trace, part: str) -> Known:
    """Return the right answer to one question, and the known wrong ones."""
    return {"right": truth(rows, part), "wrong": wrong_values(rows, MISCONCEPTIONS[part])}


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "the longest gap of two streams",
            "two streams",
            0.5,
            visible.reads("longest_gap_us", _overlapping, LATEST, ONE_STREAM),
        ),
        Check(
            "launch-bound ranges of two streams",
            "two streams",
            1,
            visible.reads("launch_bound", _overlapping, OVERLAP, ONE_STREAM),
        ),
        Check("the top kernel among other events", "other events", 1, visible.reads("top_kernel", _noisy, COPIES)),
        Check(
            "the longest gap among other events",
            "other events",
            1,
            visible.reads("longest_gap_us", _noisy, MARKS, COPIES),
        ),
    ),
    controls=(
        ANSWERS.reference(8),
        Control(
            "an answer without looking",
            "def read_trace(trace):\n"
            "    return {'top_kernel': 'gemm_kernel', 'longest_gap_us': 0, 'launch_bound': []}\n",
            0,
        ),
        ANSWERS.edited("a gap that is a float", 8, ("'longest_gap_us': ", "'longest_gap_us': 1.0 * ")),
        ANSWERS.edited("durations added up", 7, ("first = max(first, min(end, last))", "pass")),
        ANSWERS.edited("gaps between neighbours", 7.5, ("max(reached, end))", "end)")),
        ANSWERS.edited(
            "the kernels of one stream", 6.5, ("e['cat'] == 'kernel'", "e['cat'] == 'kernel' and e['tid'] == 7")
        ),
        ANSWERS.edited("a limit of two thirds", 6.4, ("if 2 *", "if 1.5 *"), below=True),
        ANSWERS.edited("a limit of two fifths", 6.4, ("if 2 *", "if 2.4 *"), below=True),
    ),
)
