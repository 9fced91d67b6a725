"""Exercise 02.4: read a trace of a GPU, as torch.profiler writes it for chrome://tracing.

The traces are generated here with random names and times, so the answers are known exactly.
"""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, same
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer

Event = Mapping[str, Any]
Trace = Mapping[str, Any]

KERNELS = ("gemm", "gelu", "softmax", "layer_norm", "copy", "add_bias", "reduce")
RANGES = ("embed", "attention", "feed_forward", "head", "loss", "norms")
PARTS = ("top_kernel", "longest_gap_us", "launch_bound")
BOUND, FILLED = (110, 150), (55, 90)
"""Percent of a kernel's time that no kernel runs after it, in ranges that are launch-bound and in others."""


known = kept(__name__, "known")


def trace(draw: Draw, ranges: int, *, streams: int = 1, noise: bool = False) -> Trace:
    """Return a trace with `ranges` ranges on the device; every second one, from a random start, is launch-bound.

    Kernels cover a little more or a little less than half of a range. Only one kernel name has the largest total time.
    With two `streams`, kernels overlap, and some end before an earlier one does. With `noise`, there are events other
    than kernels: instant events, counters, thread names, and memory copies.
    """
    events: list[Event] = []
    totals: dict[str, int] = {}
    now = draw.integer(1_000, 9_000)
    odd = draw.integer(0, 1)
    for i, name in enumerate(draw.sample(RANGES, ranges)):
        began, bound = now, i % 2 == odd
        for _ in range(draw.integer(3, 6)):
            busy = draw.integer(60, 500)
            gap = busy * draw.integer(*(BOUND if bound else FILLED)) // 100
            for stream, (start, duration) in enumerate(_overlapping(draw, now, busy, streams)):
                kernel = f"{draw.choice(KERNELS)}_kernel"
                totals[kernel] = totals.get(kernel, 0) + duration
                events.append(_event(kernel, "kernel", start, duration, 7 + stream))
            now += busy + gap
        events.append(_event(name, "gpu_user_annotation", began, now - began, 7))
        events.append(_event(name, "user_annotation", began - 700, 300, 1))  # the same range, on the host
        now += draw.integer(5, 15)
    events += _host_events(draw, events)
    if noise:
        events += _other_events(draw, now)
    made = {"schemaVersion": 1, "traceEvents": draw.sample(events, len(events))}
    if list(totals.values()).count(max(totals.values())) > 1:
        return trace(draw, ranges, streams=streams, noise=noise)
    return made


def _overlapping(draw: Draw, start: int, busy: int, streams: int) -> list[tuple[int, int]]:
    """Return start and duration of a kernel in each stream; together they are busy for that long without a gap.

    The second of two streams begins later, and either of them ends last.
    """
    if streams == 1:
        return [(start, busy)]
    first = busy if draw.chance(0.5) else busy * draw.integer(50, 70) // 100
    late = busy * draw.integer(10, 45) // 100
    ends = busy if first < busy else busy * draw.integer(60, 90) // 100
    return [(start, first), (start + late, ends - late)]


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


SAYS = {
    "top_kernel": "Add up the durations of the kernels, name by name.",
    "longest_gap_us": "Look for the longest time in which no kernel runs, between the first and the last.",
    "launch_bound": "Sorted names of the ranges on the device of which kernels fill less than half.",
}

LIMIT = "The limit is half of the range"
"""How the sentences about other limits begin."""

Traces = Callable[[Draw], list[Trace]]


def reads(part: str, traces: Traces, *seen: str) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's entry `part` is right for new random traces.

    The traces show each known mistake whose sentence begins with one of `seen`: it gives another answer to one of them.
    """

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for rows in _varied(part, traces, draw, seen):
            found, about = answer.ask(rows, part), known(rows, part)
            expected = about["right"]
            if not isinstance(found, dict) or part not in found:
                raise CheckFailedError(f"read_trace returned {found!r:.80}; expected a dict with {', '.join(PARTS)}.")
            if not same(found[part], expected):
                says = named_mistake(found[part], about["wrong"]) or SAYS[part]
                raise CheckFailedError(
                    f"In a trace of {len(rows['traceEvents'])} events {part} is "
                    f"{contrasted(found[part], expected)}. {says}"
                )

    return run


def _varied(part: str, traces: Traces, draw: Draw, seen: tuple[str, ...]) -> list[Trace]:
    """Return traces whose right answers all differ, and which show each mistake in `seen`."""
    while True:
        drawn = traces(draw)
        about = [known(rows, part) for rows in drawn]
        answers = [each["right"] for each in about]
        if all(answers.count(answer) == 1 for answer in answers) and all(map(_showing(about), seen)):
            return drawn


def _showing(about: list[Any]) -> Callable[[str], bool]:
    """Return a function that tells whether every mistake whose sentence begins so gives a wrong answer somewhere."""

    def shows(says: str) -> bool:
        wrong = [[value for value, told in each["wrong"] if told.startswith(says)] for each in about]
        rights = [each["right"] for each in about]
        return all(list(values) != rights for values in zip(*wrong, strict=True))

    return shows


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
        Check("the kernel with the most time", "top kernel", 1, reads("top_kernel", plain, "That is")),
        Check("the longest gap between kernels", "gaps", 1.5, reads("longest_gap_us", plain, "That is")),
        Check(
            "the launch-bound ranges", "launch-bound ranges", 2, reads("launch_bound", plain, "Those", "It is", LIMIT)
        ),
    ),
)
