"""Exercise 04.2: keep chosen modules as single nodes while tracing the rest."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.analysis import Asked, sees

known = kept(__name__, "known")
OPENED = "layers of torch.nn were opened as well. Ask the old rule, too: `or super().is_leaf_module(module, path)`."
USUAL = tuple(f"{kind}attention" for kind in ("", "self_", "cross_", "local_", "global_", "causal_", "linear_"))
RENAMED = ("heads", "mixer", "lookup", "tokens", "reader", "focus", "memory")
NORMS = ("norm", "ln", "layer_norm", "norm_after", "rescale", "final_norm")
LISTS = ("layers", "blocks", "stages", "stack", "encoder", "trunk")


def models(*options: Mapping[str, Any]) -> Callable[[Draw], list[Asked]]:
    """Return a function that draws one model for each of `options`.

    An option may say how many `blocks` there are, whether the attention is `renamed`, whether the blocks have a router
    (`routed`), whether one block is called again (`shared`), and the `leaves`, which come in random order.
    """

    def made(draw: Draw) -> list[Asked]:
        return [_model(draw, **each) for each in options]

    return made


def _model(
    draw: Draw,
    *,
    blocks: int = 1,
    renamed: bool = False,
    routed: bool = False,
    shared: bool = False,
    leaves: Sequence[str] = ("Attention",),
) -> Asked:
    names = {"attention": draw.choice(RENAMED if renamed else USUAL), "norm": draw.choice(NORMS), "routed": routed}
    calls = list(range(blocks))
    if shared:
        calls.insert(draw.integer(0, blocks), draw.choice(calls))
    arguments = {
        "leaves": draw.sample(leaves, len(leaves)),
        "width": draw.integer(2, 9),
        "name": draw.choice(LISTS),
        "blocks": [{**names, "activations": draw.integer(0, 3)} for _ in range(blocks)],
        "calls": calls,
    }
    return Asked("model", arguments, f"a model of {blocks} blocks")


SEVERAL = models({"blocks": 3}, {"renamed": True})
LISTED = models({"blocks": 2, "leaves": ["Block"]})

EXERCISE = Exercise(
    title="Keep parts whole",
    kind=Kind.ANALYSIS,
    entry_point="trace_keeping",
    points=8,
    wall_s=30,
    masked=("course_lib.capture", "torch.ao.quantization.fx", "torch.ao.ns"),
    hints=(
        "fx.Tracer asks its method is_leaf_module(module, path) about every module that is called.",
        "Write a subclass of fx.Tracer inside your function, so that it sees `leaves`; ask the old method, too.",
        "tracer = Keeping(); graph = tracer.trace(model); return fx.GraphModule(model, graph).",
    ),
    checks=(
        Check("one block", "leaf modules", 2, sees(known, models({}))),
        Check("three blocks, a part renamed", "several layers", 2, sees(known, SEVERAL, granted=(OPENED,))),
        Check("another class in the list", "the list", 1, sees(known, LISTED, granted=(OPENED,))),
    ),
)
