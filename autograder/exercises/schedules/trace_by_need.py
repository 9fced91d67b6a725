"""Exercise 06.2: trace the feed-forward parts of a model that cannot be traced as a whole."""

from dataclasses import replace
from typing import Any

from autograder.exercises.programs.library_passes import PASSES
from autograder.host.checks.drawn_encoder import drawn_names
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.schedule import ScheduleAnswer, Scheduled, schedules

LINEAR, SEPARATED = "torch.nn.Linear", "torch.nn.functional.linear"
BIAS_INSIDE = "A linear layer is still one node: decompose both of the part's linear layers first, then trace."


def flattened(name: str, part: str, **arguments: Any) -> Scheduled:
    """Return the feed-forward part at `part`, with two matrix products and a separate addition of each bias."""
    counts = {SEPARATED: 2, LINEAR: 0, "torch.nn.Dropout": 1}
    says = {SEPARATED: {0: BIAS_INSIDE, 1: BIAS_INSIDE}}
    return Scheduled(name, {"branches": True, **arguments}, counts, part=part, says=says)


def of_every_layer(answer: ScheduleAnswer, draw: Draw) -> None:
    """Check a model of three layers, together with one whose parts have drawn names, so that no list of paths fits."""
    names = drawn_names(draw, "layers", "feed_forward", "dense")
    part = f"{names['layers']}.1.{names['feed_forward']}"
    schedules(
        flattened("of three layers, the second", "layers.1.feed_forward", layers=3),
        flattened("of two layers with drawn names", part, layers=2, names=names),
        together=True,
    )(answer, draw)


EXERCISE = Exercise(
    title="Trace by need",
    kind=Kind.SCHEDULE,
    entry_point="trace_feed_forwards",
    points=8,
    masked=PASSES,
    hints=(
        "What is to be traced is said by a class, not by a path: look at type(module).__name__.",
        "Collect the paths of all FeedForward parts first; then work on schedule[path], one after the other.",
        "In each: decompose every nn.Linear by its path below the part, and only then call trace() on the part.",
    ),
    checks=(
        Check(
            "the feed-forward part of one layer is a flat graph",
            "tracing",
            2,
            schedules(flattened("of one layer, which branches", "layers.0.feed_forward")),
        ),
        Check(
            "the part of every layer",
            "several layers",
            2,
            of_every_layer,
        ),
        Check(
            "training mode",
            "training mode",
            1,
            schedules(replace(flattened("in training mode", "layers.0.feed_forward", dropout=0.25), training=True)),
        ),
    ),
)
