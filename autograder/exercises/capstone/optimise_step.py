"""Exercises 17.2 to 17.4: make a training step of an encoder cheaper; a gate of values stands before each counter."""

from autograder.exercises.programs.library_passes import PASSES
from autograder.host.checks.training_step import Step, cheaper
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.speed import Speed
from autograder.host.traced import Program

LAYER = Step(
    "of one layer",
    {"width": 32, "heads": 4},
    {"kernels": 23, "launches": 58, "bytes_moved": 749_248, "saved_bytes": 69_648},
)
WIDE = {"width": 1024, "inside": 16, "heads": 1, "dropout": 0.1, "eps": 1e-5}
IDEAL_RATIO = 1.43  # the bytes that a step of this layer moves, before and after; elsewhere its products take the time


def wide_layer(batch: int) -> Program:
    """Return the layer whose step is timed: narrow inside, so that the ends of its blocks take most of the time."""
    return Step("of one wide layer", WIDE, {}, batch=batch, sequence=8).program()


EXERCISE = Exercise(
    title="Make a training step cheaper",
    kind=Kind.GRAPH,
    entry_point="optimise",
    points=75,
    wall_s=120,
    masked=PASSES,
    step=Speed(wide_layer(256), IDEAL_RATIO, on_gpu=Speed(wide_layer(4096), IDEAL_RATIO)),
    hints=(
        "Record the counters first. Which operators of the forward pass write what only the next one reads?",
        "Each block ends in a linear layer, dropout, a residual sum and a LayerNorm: six launches that can be three.",
        "Take the bias out of the linear layer in front of a block's end: F.linear(x, weight), then "
        "torch.ops.course_lib.bias_dropout_residual_layer_norm. Read the pass of that name in course_lib.fusion. An "
        "operator of your own in its place has one launch forward, and backward one program that sums over rows.",
    ),
    checks=(Check("one layer: gate, then counters", "counted cost", 45, cheaper((LAYER,), gate=LAYER)),),
)
