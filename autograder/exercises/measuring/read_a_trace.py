"""Exercise 02.4: read a trace of a GPU, as torch.profiler writes it for chrome://tracing.

The traces are generated here with random names and times, so the answers are known exactly.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.misconceptions import Misconception, explained_value
from autograder.host.kinds.value import ValueAnswer

Event = Mapping[str, Any]
Trace = Mapping[str, Any]

KERNELS = ("gemm", "gelu", "softmax", "layer_norm", "copy", "add_bias", "reduce")
RANGES = ("embed", "attention", "feed_forward", "head", "loss", "norms")
PARTS = ("top_kernel", "longest_gap_us", "launch_bound")


def trace(draw: Draw, ranges: int, *, streams: int = 1, noise: bool = False) -> Trace:
    """Return a trace with `ranges` ranges on the device; every second one, from a random start, is launch-bound.

    Only one kernel name has the largest total time. With two `streams`, kernels overlap. With `noise`, there are events
    other than kernels: instant events, counters, thread names, and memory copies.
    """
    events: list[Event] = []
    now = draw.integer(1_000, 9_000)
    odd = draw.integer(0, 1)
    for i, name in enumerate(draw.sample(RANGES, ranges)):
        began, bound, tight = now, i % 2 == odd, draw.chance(0.5)
        for _ in range(draw.integer(3, 6)):
            duration = draw.integer(60, 140) if bound else draw.integer(150, 500)
            gap = duration * draw.integer(*((8 + 3 * streams, 22) if bound else (5, 8))) // 10  # near half, either way
            gap = draw.integer(2, 9) if tight and not bound else gap
            end = now
            for stream in range(streams):  # the second starts after a quarter of the first, and may end before it
                start, lasts = now + stream * (duration // 4), duration // draw.choice((1, 3)) if stream else duration
                events.append(_event(f"{draw.choice(KERNELS)}_kernel", "kernel", start, lasts, 7 + stream))
                end = max(end, start + lasts)
            now = end + gap
        events.append(_event(name, "gpu_user_annotation", began, now - began, 7))
        events.append(_event(name, "user_annotation", began - 700, 300, 1))  # the same range, on the host
        now += draw.integer(5, 15)
    events += _host_events(draw, events)
    if noise:
        events += _other_events(draw, now)
    made = {"schemaVersion": 1, "traceEvents": draw.sample(events, len(events))}
    totals = sorted(_totals(kernels_of(made)).values())
    if len(totals) > 1 and totals[-1] == totals[-2]:
        return trace(draw, ranges, streams=streams, noise=noise)
    return made


def _event(name: str, category: str, start: int, duration: int, thread: int) -> Event:
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "tid": thread}


def _host_events(draw: Draw, events: list[Event]) -> list[Event]:
    """Return the host's events: an operator for each kernel, some of them long."""
    kernels = [event for event in events if event["cat"] == "kernel"]
    return [_event(f"aten::{draw.choice(KERNELS)}", "cpu_op", e["ts"] - 400, draw.integer(5, 900), 1) for e in kernels]


def _other_events(draw: Draw, end: int) -> list[Event]:
    copies = [_event("Memcpy HtoD", "gpu_memcpy", draw.integer(1_000, end), 5_000, 9) for _ in range(2)]
    marks = [{"ph": "i", "cat": "kernel", "name": "mark", "ts": draw.integer(1, 900), "s": "g"} for _ in range(3)]
    counter = {"ph": "C", "name": "memory", "ts": draw.integer(1_000, end), "args": {"bytes": 1}}
    return [*copies, *marks, counter, {"ph": "M", "name": "thread_name", "tid": 7, "args": {"name": "stream 7"}}]


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


OTHER_KERNELS = (_longest_single, _most_calls)


def gap_between_neighbours(rows: Trace) -> int:
    """Return the wrong gap that neighbours give where a kernel ends before an earlier one."""
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


def _bound(rows: Trace, covered: Callable[[list[Event], int, int], int]) -> list[str]:
    ranges = [e for e in rows["traceEvents"] if e.get("cat") == "gpu_user_annotation"]
    events = kernels_of(rows)
    return sorted(e["name"] for e in ranges if 2 * covered(events, e["ts"], e["ts"] + e["dur"]) < e["dur"])


def _by_start(events: list[Event], start: int, end: int) -> int:
    return sum(e["dur"] for e in events if start <= e["ts"] < end)


def _added_up(events: list[Event], start: int, end: int) -> int:
    return sum(max(min(e["ts"] + e["dur"], end) - max(e["ts"], start), 0) for e in events)


def bound_below(share: float) -> Callable[[Trace], list[str]]:
    """Return a formula for the ranges of which kernels cover less than `share`, which is wrong unless it is a half."""
    return lambda rows: _bound(rows, lambda *place: int(busy_us(*place) / share / 2))


def _unsorted(rows: Trace) -> list[str]:
    names = [e["name"] for e in rows["traceEvents"] if e.get("cat") == "gpu_user_annotation"]
    return sorted(truth(rows, "launch_bound"), key=names.index)


OTHER_RANGES = (*map(bound_below, (0.4, 0.6)), _unsorted)


def bound_by_sums(rows: Trace) -> list[str]:
    """Return the wrong ranges that added durations give where kernels overlap."""
    return _bound(rows, _added_up)


OVERLAP = "Kernels of two streams overlap: time in which two of them run counts once, so durations cannot be added up."
MARKS = "Events of the category kernel without a duration are marks: take those whose `ph` is X."


MISCONCEPTIONS: dict[str, tuple[Misconception, ...]] = {
    "top_kernel": (
        Misconception(
            lambda rows: _first_of(_totals([e for e in rows["traceEvents"] if e.get("cat") == "cpu_op"])),
            "That is an operator on the host; kernels have the category kernel.",
        ),
        Misconception(_longest_single, "That is the longest single call; add up all calls of a name."),
        Misconception(_most_calls, "That is called most often; add up durations, not calls."),
    ),
    "longest_gap_us": (
        Misconception(_gap_with_marks, MARKS),
        Misconception(lambda rows: longest_gap_us(_marks_too(rows)), MARKS),
        Misconception(_gap_from_start_to_start, "That is from start to start; a gap begins where a kernel ends."),
        Misconception(
            gap_between_neighbours, "Kernels of two streams overlap: measure from the latest end so far, not the last."
        ),
    ),
    "launch_bound": (
        Misconception(lambda rows: _bound(rows, _by_start), OVERLAP),
        Misconception(bound_by_sums, OVERLAP),
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
    ),
}
SAYS = {
    "top_kernel": "Add up the durations of the kernels, name by name.",
    "longest_gap_us": "Look for the longest time in which no kernel runs, between the first and the last.",
    "launch_bound": "Sorted names of the ranges on the device of which kernels fill less than half.",
}

Traces = Callable[[Draw], list[Trace]]


def reads(part: str, traces: Traces, *wrong: Callable[[Trace], Any]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's entry `part` is right for new random traces; each formula in `wrong` is not."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for rows in _varied(part, traces, draw, wrong):
            found, expected = answer.ask(rows, part), truth(rows, part)
            if not isinstance(found, dict) or part not in found:
                raise CheckFailedError(f"read_trace returned {found!r:.80}; expected a dict with {', '.join(PARTS)}.")
            if type(found[part]) is not type(expected) or found[part] != expected:
                says = explained_value(found[part], rows, MISCONCEPTIONS[part]) or SAYS[part]
                raise CheckFailedError(
                    f"In a trace of {len(rows['traceEvents'])} events {part} is "
                    f"{contrasted(found[part], expected)}. {says}"
                )

    return run


def _varied(part: str, traces: Traces, draw: Draw, wrong: Sequence[Callable[[Trace], Any]]) -> list[Trace]:
    """Return traces whose right answers all differ; each formula in `wrong` gives another answer for one at least."""
    while True:
        drawn = traces(draw)
        answers = [truth(rows, part) for rows in drawn]
        told = all([formula(rows) for rows in drawn] != answers for formula in wrong)
        if told and all(answers.count(answer) == 1 for answer in answers):
            return drawn


def plain(draw: Draw) -> list[Trace]:
    """Return traces of one stream."""
    return [trace(draw, ranges) for ranges in (3, 4, 5)]


EXERCISE = Exercise(
    title="Read a trace",
    kind=Kind.VALUE,
    entry_point="read_trace",
    points=8,
    wall_s=20,
    hints=(
        "Print three events of the trace. Which field says whether an event is a kernel, an operator of the host or a "
        "range, and which say when it ran?",
        "Sort the kernels by `ts` once. For the gap, walk through them and remember the latest end so far; for a range "
        "add up what of each kernel lies inside it.",
        "The part of a kernel inside a range goes from the larger of the two starts to the smaller of the two ends. "
        "Where streams overlap, begin at the latest end so far if that is larger still.",
    ),
    checks=(
        Check("the kernel with the most time", "top kernel", 1.4, reads("top_kernel", plain, *OTHER_KERNELS)),
        Check("the longest gap between kernels", "gaps", 1.4, reads("longest_gap_us", plain)),
        Check("the launch-bound ranges", "launch-bound ranges", 1.6, reads("launch_bound", plain, *OTHER_RANGES)),
    ),
)
