"""Exercise 06.4: fuse bias, dropout, residual and LayerNorm at the end of each block, by a schedule."""

from collections.abc import Mapping, Sequence
from typing import Any

from autograder.exercises.programs.library_passes import PASSES
from autograder.exercises.schedules.separate_biases import SEPARATED
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.schedule import Scheduled, scheduled_speed, schedules
from autograder.host.kinds.wiring import Wiring, input_named, output_of, result_of, tensor_at

OPERATOR = "torch.ops.course_lib.bias_dropout_residual_layer_norm"
NORM, DROPOUT, FUNCTIONAL_NORM = "torch.nn.LayerNorm", "torch.nn.Dropout", "torch.nn.functional.layer_norm"
LAUNCHES = 18  # of one layer: the two fused calls, and all other operators unchanged


OF_THE_NOTEBOOK: Mapping[str, Any] = {"width": 16, "dropout": 0.1, "eps": 1e-12}  # its layer; see `fused`
WIDE: Mapping[str, Any] = {"width": 1024, "inside": 8, "heads": 1}
IDEAL_RATIO = 1.33  # the bytes that a layer of this width moves, before and after

NEAR_ONE = (
    "Shown, not graded: this is evaluation, where dropout does nothing, and a linear layer adds its bias within its "
    "product. A fused end saves only the sum's pass over the rows; on a CPU that is little beside the products, and "
    "the ratio stays near 1. In training it also saves dropout's mask."
)
ARGUMENTS = ("x", "bias", "residual", "weight", "layer_norm_bias", "p", "training", "eps")


def wired(layers: int, names: Mapping[str, str]) -> Wiring:
    """Return where the tensors of each fused call come from, in an encoder whose parts have these names."""
    dense, norm, forward = (names.get(name, name) for name in ("dense", "attention_norm", "feed_forward"))
    ends = [
        (f"layers.{i}.{projection}.{dense}", f"layers.{i}.{last}")
        for i in range(layers)
        for projection, last in (("projection", norm), (f"{forward}.projection", "feed_forward_norm"))
    ]
    calls = [
        {
            "x": output_of(linear),
            "bias": tensor_at(f"{linear}.bias"),
            "residual": result_of(number) if number else input_named("hidden"),
            "weight": tensor_at(f"{last}.weight"),
            "layer_norm_bias": tensor_at(f"{last}.bias"),
        }
        for number, (linear, last) in enumerate(ends)
    ]
    return Wiring(ARGUMENTS, calls)


def fused(name: str, layers: int = 1, *, training: bool = False, counted: bool = False, **arguments: Any) -> Scheduled:
    """Return a post-LN encoder in which both blocks of every layer end in one call.

    Its numbers are those of the notebook's layer but for `arguments`, so a pattern that holds one of them as a literal
    fails the checks with another one only.
    """
    numbers = {**OF_THE_NOTEBOOK, **arguments}
    too_few = (
        "Only some blocks end in the fused call; in each layer both the attention and the feed-forward block should."
    )
    return Scheduled(
        name,
        {"layers": layers, **numbers},
        {OPERATOR: 2 * layers, NORM: 0, DROPOUT: layers},
        training=training,
        literals={OPERATOR: (numbers["dropout"], training, numbers["eps"])},
        says={OPERATOR: dict.fromkeys(range(1, 2 * layers), too_few)},
        explain=why_nothing_was_fused,
        uncounted={SEPARATED: 2 * layers},
        launches=LAUNCHES * layers if counted else None,
        wiring={OPERATOR: wired(layers, arguments.get("names", {}))},
    )


def norm_first(**arguments: Any) -> Scheduled:
    """Return an encoder in which nothing fits."""
    return Scheduled(
        "with norm_first",
        {"norm_first": True, **arguments},
        {OPERATOR: 0},
        reason="There LayerNorm comes before the block, and the sum is read again as the next residual.",
    )


def why_nothing_was_fused(called: Sequence[str]) -> str:
    """Return the likely reason why no call of the operator is among the names of all calls."""
    if SEPARATED not in called:
        return "Nothing fits: the bias is inside nn.Linear. Decompose the linear layers, then trace, then find."
    if FUNCTIONAL_NORM in called:
        return (
            "The places were found, but the operators are still there one by one: `compiler` has to be a function "
            "that calls the operator."
        )
    return (
        "The biases are operators of their own, but the pattern fits nowhere. Compare it with the graph, argument by "
        "argument: a number, mode or shape in the pattern fits no other one, so give it a parameter of its own."
    )


EXERCISE = Exercise(
    title="Fuse the ends of the blocks",
    kind=Kind.SCHEDULE,
    entry_point="fuse_block_ends",
    points=15,
    masked=PASSES,
    # narrow inside its blocks, so that a layer's time is that of moving the rows at their ends
    speed=scheduled_speed(
        fused("of one wide layer", **WIDE),
        IDEAL_RATIO,
        batch=256,
        sequence=8,
        shown_only=NEAR_ONE,
        on_gpu=scheduled_speed(fused("of one wide layer", **WIDE), IDEAL_RATIO, batch=4096, sequence=8),
    ),
    hints=(
        "Four nodes in a row: add, dropout, add, layer_norm. The first is hidden in nn.Linear until you decompose it.",
        "In the pattern, give shape, p, training and eps parameters of their own: what they hold in the model, the "
        "kernel is called with.",
        "For every TransformerLayer: decompose the nn.Linear inside each Projection, trace the layer, find, fuse "
        "with compiler=a function that calls the operator.",
    ),
    checks=(
        Check("one layer", "pattern", 1.5, schedules(fused("of one layer"))),
        Check("all layers", "several layers", 1.5, schedules(fused("of two layers of another width", 2, width=8))),
        Check(
            "probability, mode and eps in training",
            "training mode",
            2,
            schedules(fused("in training mode", dropout=0.25, training=True, eps=1e-3)),
        ),
        Check(
            "LayerNorm before the block, and one layer",
            "look-alikes",
            0.5,
            schedules(norm_first(), fused("of one layer, without dropout", dropout=0.0), together=True),
        ),
        Check("launches", "counted cost", 3, schedules(fused("of one layer", counted=True)), speed=True),
    ),
)
