"""Exercise 01.3: BERT's layer and a stack of layers, with the LayerNorm after or before each part."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional as F

from autograder.exercises.programs.bert_formulas import Formula, State, attention_shapes, bert_layer
from autograder.host.checks.function_checks import agrees
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, require_outputs
from autograder.host.kinds.misconceptions import Misconception, explained
from autograder.host.kinds.module import Build, BuiltModule, ModuleAnswer, require_parameters

NAMES = ("the output",)
Sizes = tuple[int, int, int, int]  # layers, hidden size, heads, intermediate size


def shapes(layers: int, hidden: int, heads: int, intermediate: int) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every parameter of the stack."""
    norm = {"weight": (hidden,), "bias": (hidden,)}
    parts = {
        **{f"attention.{name}": shape for name, shape in attention_shapes(hidden).items()},
        **{f"attention_norm.{part}": shape for part, shape in norm.items()},
        "up.weight": (intermediate, hidden),
        "up.bias": (intermediate,),
        "down.weight": (hidden, intermediate),
        "down.bias": (hidden,),
        **{f"feed_forward_norm.{part}": shape for part, shape in norm.items()},
    }
    return {f"layers.{i}.{name}": shape for i in range(layers) for name, shape in parts.items()}


def draw_state(draw: Draw, sizes: Sizes, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Return random weights; those of norms are near 1."""
    state = {}
    for name, shape in shapes(*sizes).items():
        state[name] = draw.normal(*shape, scale=0.8 * shape[-1] ** -0.5 if len(shape) > 1 else 0.3)
        state[name] = (state[name] + name.endswith("norm.weight")).to(dtype)
    return state


def encoder(state: State, sizes: Sizes, **options: Any) -> Formula:
    """Return the formula on (batch, sequence, hidden) with these weights; `options` are those of `bert_layer`."""
    layers, _, heads, _ = sizes

    def formula(hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        for i in range(layers):
            own = {name: value.to(hidden.dtype) for name, value in of_layer(state, i).items()}
            hidden = bert_layer(own, heads, **options)(hidden, mask)
        return hidden

    return formula


def of_layer(state: State, i: int) -> dict[str, torch.Tensor]:
    """Return the weights of one layer, without the layer's prefix in their names."""
    prefix = f"layers.{i}."
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def _first(part: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    return part


def misconceptions(state: State, sizes: Sizes, *, norm_first: bool) -> tuple[Misconception, ...]:
    """Return common mistakes as wrong formulas on the same weights."""

    def wrong(says: str, **options: Any) -> Misconception:
        return Misconception(encoder(state, sizes, **({"norm_first": norm_first} | options)), says)

    other = (
        "The norm comes after the sum although norm_first=True: x + part(norm(x))."
        if norm_first
        else "The norm comes before each part although norm_first=False: norm(x + part(x))."
    )
    return (
        wrong(other, norm_first=not norm_first),
        wrong("There is no residual sum: what goes into a part must be added to what comes out.", residual=_first),
        wrong("The activation is ReLU; BERT's is GELU.", activation=F.relu),
        wrong("GELU is approximated by tanh; BERT's is the exact one.", activation=_tanh_gelu),
        wrong("The residual sum adds the normed input; it should add the input as it came.", from_norm=True),
        wrong("LayerNorm has its usual eps of 1e-5; BERT's is 1e-12.", eps=1e-5),
    )


def _tanh_gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")


def built(
    answer: ModuleAnswer, draw: Draw, sizes: Sizes, *, norm_first: bool, dtype: torch.dtype = torch.float32
) -> tuple[BuiltModule, dict[str, torch.Tensor]]:
    """Return the student's stack with random weights, and these weights."""
    state = draw_state(draw, sizes, dtype)
    return answer.built(Build(sizes, {"norm_first": True} if norm_first else {}), state), state


def _parameters(answer: ModuleAnswer, draw: Draw) -> None:
    for sizes in ((1, 12, 3, 20), (3, 8, 2, draw.choice((8, 24, 40)))):
        require_parameters(answer.describe(Build(sizes)), shapes(*sizes))


def equal(*, norm_first: bool, sizes: Sizes = (2, 16, 4, 24)) -> Callable[[ModuleAnswer, Draw], None]:
    """Return a check of the output values with the norms before or after each part."""

    def run(answer: ModuleAnswer, draw: Draw) -> None:
        module, state = built(answer, draw, sizes, norm_first=norm_first)
        known = misconceptions(state, sizes, norm_first=norm_first)

        def cases(draw: Draw) -> Iterator[Case]:
            # include small tokens, because eps matters only there
            for scale in (1.0, 1e-3):
                yield Case((draw.normal(2, 5, sizes[1], scale=scale),), label=f"with norm_first={norm_first}")

        agrees(encoder(state, sizes, norm_first=norm_first), cases, NAMES, known)(module, draw)

    return run


def _masked(answer: ModuleAnswer, draw: Draw) -> None:
    sizes = (2, 12, 3, 16)
    hidden, mask = draw.normal(2, 5, 12), torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[:, :, :, draw.integer(1, 4)] = False
    for norm_first in (False, True):
        module, state = built(answer, draw, sizes, norm_first=norm_first)
        _require_masked(module, encoder(state, sizes, norm_first=norm_first), Case((hidden, mask), label="with a mask"))


def _require_masked(module: BuiltModule, formula: Formula, case: Case) -> None:
    reply = module.call(case)
    unmasked = Misconception(
        lambda hidden, mask: formula(hidden), "The mask does not reach attention; hand it on in every layer."
    )
    try:
        require_outputs(reply, case, formula, NAMES)
    except CheckFailedError as error:
        raise CheckFailedError(explained(reply, case, NAMES, (unmasked,)) or str(error)) from None


EXERCISE = Exercise(
    title="BERT's layer, and a stack of it",
    kind=Kind.MODULE,
    entry_point="BertEncoder",
    points=12,
    needs=("01_scaled_dot_product", "01_multi_head_attention"),
    masked=("course_lib.models", "course_lib.training"),
    wall_s=120,
    checks=(
        Check("names and shapes of all parameters", "parameters", 1.8, _parameters),
        Check("equal to BERT's formula, norm last", "norm last", 2.4, equal(norm_first=False)),
        Check("equal to the formula with the norm first", "norm first", 1.8, equal(norm_first=True)),
        Check("the mask reaches every layer", "masks", 1.2, _masked),
    ),
    hints=(
        "Two parts, each with a residual sum and a LayerNorm. Where does the sum take its second half from?",
        "Write one layer as a class of its own, with `attention`, `attention_norm`, `up`, `down` and "
        "`feed_forward_norm`; the stack is an nn.ModuleList called `layers`.",
        "Norm last: `attention_norm` of a sum, `hidden` and what `attention` makes of it under the mask. Norm first: "
        "the norm moves into the brackets of the part. Then the same once more, with `up`, `F.gelu` and `down`.",
    ),
)
