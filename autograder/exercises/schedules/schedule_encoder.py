"""Exercise 06.6: one schedule for every encoder, with a configuration that selects its steps."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from autograder.exercises.programs.library_passes import PASSES
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.schedule import Scheduled, scheduled_speed, schedules

OPERATORS = {
    "attention": "torch.nn.functional.scaled_dot_product_attention",
    "gelu": "torch.ops.course_lib.bias_gelu",
    "block_ends": "torch.ops.course_lib.bias_dropout_residual_layer_norm",
}
IN_A_LAYER = {"attention": 1, "gelu": 1, "block_ends": 2}
ALL = dict.fromkeys(OPERATORS, True)
LAUNCHES = 10  # of one layer with all steps of the schedule
FROZEN = (
    "A flat trace asks for `self.training` once and writes the answer into the graph: keep the module that asks whole, "
    "with leaf_modules."
)
TWICE = "The schedule was applied twice; a part that is traced or replaced already should be left as it is."


def too_few(key: str, layers: int) -> dict[int, str]:
    """Return the likely mistake by the number of places, if `key` was applied in too few places."""
    if key == "block_ends":
        one_end = "Only one end of each layer was fused: what is decomposed or traced first hides the other's parts."
        return {layers: one_end if layers == 1 else f"{one_end} Or only some layers were done."}
    return {1: "Only one layer was done."} if layers > 1 else {}


def scheduled(
    name: str, config: dict[str, bool], layers: int = 1, *, without: str = "", counted: bool = False, **arguments: Any
) -> Scheduled:
    """Return an encoder with `config`; no place in it fits the operator `without`."""
    wanted = {key: IN_A_LAYER[key] * layers * (config[key] and key != without) for key in OPERATORS}
    return Scheduled(
        name,
        {"layers": layers, "eps": 1e-5, **{key: value for key, value in arguments.items() if key != "times"}},
        {OPERATORS[key]: count for key, count in wanted.items()},
        question=(config,),
        times=arguments.get("times", 1),
        says={
            OPERATORS[key]: {0: f"`{key}` is on in the configuration."} | too_few(key, layers)
            if wanted[key]
            else {IN_A_LAYER[key] * layers: f"`{key}` is off in the configuration, or fits nowhere here."}
            for key in OPERATORS
        },
        reason=TWICE if "times" in arguments else "",
        launches=LAUNCHES * layers if counted else None,
        steps=True,
    )


def in_both_modes(*, layers: int, dropout: float) -> Sequence[Scheduled]:
    """Return an encoder in training, and one that is scheduled in training and is in evaluation afterwards."""
    last = f"p = {dropout}"
    return (
        replace(scheduled(f"in training mode, {last}", ALL, layers, dropout=dropout), training=True),
        replace(
            scheduled(f"scheduled in training and then switched to evaluation, {last}", ALL, layers, dropout=dropout),
            switched=True,
            literals={OPERATORS["attention"]: (0.0,)},
            reason=FROZEN,
        ),
    )


LONG = scheduled("of one layer with long sequences", ALL, width=64, heads=4)

EXERCISE = Exercise(
    title="A schedule for every encoder",
    kind=Kind.SCHEDULE,
    entry_point="schedule_encoder",
    points=10,
    masked=PASSES,
    speed=scheduled_speed(
        LONG,
        1.5,  # mostly of attention, whose scores a CPU never writes to memory
        batch=1,
        sequence=1024,
        on_gpu=scheduled_speed(LONG, 1.33, batch=8, sequence=1024),  # an H200 reached 1.30
    ),
    needs=("06_replace_attention", "06_fuse_block_ends"),
    hints=(
        "Three steps that you have written before; the order matters: replace, decompose, trace, find, fuse. And what "
        "becomes of the new attention's `self.training` in a flat trace?",
        'config["gelu"] and the others say which steps are to be done. fuse refuses an empty result: ask len first.',
        "Called a second time, every layer is an fx.GraphModule already, still of the old class name: leave it alone. "
        "`leaf_modules=(...,)` with the class of your attention keeps that whole.",
    ),
    checks=(
        Check("everything, in one layer", "composition", 1.5, schedules(scheduled("of one layer", ALL))),
        Check(
            "one step at a time",
            "configuration",
            1.5,
            schedules(
                *(
                    scheduled(f"with {key} alone", {**dict.fromkeys(OPERATORS, False), key: True}, 2)
                    for key in OPERATORS
                )
            ),
        ),
        Check(
            "training mode, and evaluation after it",
            "training mode",
            1,
            schedules(*in_both_modes(layers=1, dropout=0.25)),
        ),
        Check("launches", "counted cost", 3, schedules(scheduled("of two layers", ALL, 2, counted=True)), speed=True),
    ),
)
