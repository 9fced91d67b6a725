"""Exercise 01.3: BERT's layer and a stack of layers, with the LayerNorm after or before each part."""

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional as F

from autograder.exercises.programs.bert_formulas import BOTH, Formula, State, attention_shapes, bert_layer
from autograder.exercises.transformer import multi_head_attention
from autograder.exercises.transformer.scaled_dot_product import READY_MADE
from autograder.host.checks.function_checks import agrees
from autograder.host.checks.known_mistakes import Mistake, options_of, require_none_of
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, require_outputs
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


def encoder(
    state: State, sizes: Sizes, *, masked_layers: str = "all", one_layer: bool = False, **options: Any
) -> Formula:
    """Return the formula on (batch, sequence, hidden) with these weights; `options` are those of `bert_layer`.

    With `masked_layers` "first", only the first layer gets the mask; with `one_layer` every layer is the first one.
    Both are mistakes.
    """
    layers, _, heads, _ = sizes

    def formula(hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        for i in range(layers):
            own = {name: value.to(hidden.dtype) for name, value in of_layer(state, 0 if one_layer else i).items()}
            hidden = bert_layer(own, heads, **options)(hidden, mask if i == 0 or masked_layers == "all" else None)
        return hidden

    return formula


def of_layer(state: State, i: int) -> dict[str, torch.Tensor]:
    """Return the weights of one layer, without the layer's prefix in their names."""
    prefix = f"layers.{i}."
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


ADD = "add what goes into a part to what comes out of it."
NO_SUM = (("There is", ()), ("The feed-forward part has", ("attention",)), ("Attention has", ("feed_forward",)))
"""Where the sum is missing, and the parts that have one."""


def _mistakes(norm_first: bool) -> tuple[Mistake, ...]:
    """Return common mistakes as options of `encoder`.

    Both checks of values count those of "norm", and those of "residual" in full: a missing sum is the idea itself.
    """

    def wrong(says: str, counted: str = "norm", **options: Any) -> Mistake:
        return Mistake(options, says, counted)

    order = (
        "The norm comes after the sum although norm_first=True: x + part(norm(x))."
        if norm_first
        else "The norm comes before each part although norm_first=False: norm(x + part(x))."
    )
    normed = "of {} adds the normed input; it should add the input as it came: x + part(norm(x))."
    return (
        wrong(order, norm_first=not norm_first),
        *(wrong(f"{where} no residual sum: {ADD}", "residual", added=added) for where, added in NO_SUM),
        wrong("The residual sum " + normed.format("each part"), from_norm=BOTH),
        wrong("The residual sum " + normed.format("attention"), from_norm=("attention",)),
        wrong("The residual sum " + normed.format("the feed-forward part"), from_norm=("feed_forward",)),
        wrong("`attention_norm` is used for both parts; the second has a norm of its own.", norms=("attention",) * 2),
        wrong("`feed_forward_norm` is used for both parts; attention has its own.", norms=("feed_forward",) * 2),
        wrong("The two norms are swapped: `attention_norm` belongs to attention.", norms=BOTH[::-1]),
        wrong("The activation is ReLU; BERT's is GELU.", activation=F.relu),
        wrong("The activation is SiLU; BERT's is GELU.", activation=F.silu),
        wrong("The activation is tanh; BERT's is GELU.", activation=torch.tanh),
        wrong("There is no activation between `up` and `down`; BERT's is GELU.", activation=torch.clone),
        wrong("GELU is approximated by tanh; BERT's is the exact one.", activation=_tanh_gelu),
        wrong("LayerNorm has its usual eps of 1e-5; BERT's is 1e-12.", eps=1e-5),
        wrong("LayerNorm has an eps of 1e-6; BERT's is 1e-12.", eps=1e-6),
        wrong("Every layer is the first one: call each of `self.layers` in turn.", one_layer=True),
        wrong("Only the first layer gets the mask; hand it on in every layer.", "masks", masked_layers="first"),
        wrong("The mask does not reach attention; hand it on in every layer.", "masks", masks="ignored"),
        *(replace(m, counted="norm" if m.counted == "values" else m.counted) for m in multi_head_attention.MISTAKES),
    )


def _tanh_gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")


Found = tuple[Mistake, ...] | None
_found: weakref.WeakKeyDictionary[ModuleAnswer, dict[bool, Found]] = weakref.WeakKeyDictionary()


def mistakes_of(answer: ModuleAnswer, draw: Draw, *, norm_first: bool) -> Found:
    """Return the known mistakes with this order of norm and part, found with one call; None for an unknown result."""
    known = _found.setdefault(answer, {})
    if norm_first not in known:
        sizes: Sizes = (2, 12, 3, 16)
        shared = draw.shared(f"one call, {norm_first}")
        module, state = built(answer, shared, sizes, norm_first=norm_first)
        hidden = shared.normal(2, 5, 12)
        hidden[1] *= 1e-3  # eps matters for small tokens only
        case = Case((hidden, multi_head_attention.half_hidden(2, 5)))

        def formula(options: Mapping[str, Any]) -> Formula:
            return encoder(state, sizes, **({"norm_first": norm_first} | dict(options)))

        known[norm_first] = multi_head_attention.explaining(module, case, formula, _mistakes(norm_first))
    return known[norm_first]


def formula_of(
    answer: ModuleAnswer, draw: Draw, state: State, sizes: Sizes, *, norm_first: bool, category: str
) -> Formula:
    """Return the formula that the answer has to compute with these weights: with its known mistakes.

    Raises `CheckFailedError` for a mistake that the check of `category` counts. One that is made with the norm last is
    not counted a second time with the norm first, but for a missing residual sum.
    """
    found = mistakes_of(answer, draw, norm_first=norm_first) or ()
    before = (mistakes_of(answer, draw, norm_first=False) or ()) if category == "norm first" else ()
    if category in ("norm last", "norm first", "residual path"):
        require_none_of("residual", found)
    counted = "masks" if category == "masks" else "norm" if category.startswith("norm") else ""
    require_none_of(counted, [m for m in found if m.options not in [earlier.options for earlier in before]])
    return encoder(state, sizes, **({"norm_first": norm_first} | options_of(found)))


def built(
    answer: ModuleAnswer,
    draw: Draw,
    sizes: Sizes,
    *,
    norm_first: bool,
    dtype: torch.dtype = torch.float32,
    training: bool = False,
) -> tuple[BuiltModule, dict[str, torch.Tensor]]:
    """Return the student's stack with random weights, and these weights."""
    state = draw_state(draw, sizes, dtype)
    build = Build(sizes, {"norm_first": True} if norm_first else {})
    return answer.built(build, state, training=training), state


def _parameters(answer: ModuleAnswer, draw: Draw) -> None:
    random = (draw.integer(1, 4), 6 * draw.integer(1, 4), 3, draw.integer(5, 40))
    for sizes in ((1, 12, 3, 20), (3, 8, 2, draw.choice((8, 24, 40))), random):
        for norm_first in (False, True):
            found = answer.describe(Build(sizes, {"norm_first": norm_first}))
            if not found.parameters:
                raise CheckFailedError(
                    "The module has no parameters at all. nn.Module does not look into a plain list or dict: keep the "
                    "layers in an nn.ModuleList."
                )
            require_parameters(found, shapes(*sizes))


def equal(*, norm_first: bool, sizes: Sizes = (2, 16, 4, 24)) -> Callable[[ModuleAnswer, Draw], None]:
    """Return a check of the output values with the norms before or after each part."""

    def run(answer: ModuleAnswer, draw: Draw) -> None:
        category = f"norm {'first' if norm_first else 'last'}"
        module, state = built(answer, draw, sizes, norm_first=norm_first)
        formula = formula_of(answer, draw, state, sizes, norm_first=norm_first, category=category)

        def cases(draw: Draw) -> Iterator[Case]:
            # include small tokens, because eps matters only there
            for scale in (1.0, 1e-3):
                yield Case((draw.normal(2, 5, sizes[1], scale=scale),), label=f"with norm_first={norm_first}")

        agrees(formula, cases, NAMES)(module, draw)

    return run


def _masked(answer: ModuleAnswer, draw: Draw) -> None:
    sizes = (2, 12, 3, 16)
    hidden, mask = draw.normal(2, 5, 12), torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[:, :, :, draw.integer(1, 4)] = False
    for norm_first in (False, True):
        module, state = built(answer, draw, sizes, norm_first=norm_first)
        formula = formula_of(answer, draw, state, sizes, norm_first=norm_first, category="masks")
        case = Case((hidden, mask), label="with a mask")
        require_outputs(module.call(case), case, formula, NAMES)


EXERCISE = Exercise(
    title="BERT's layer, and a stack of it",
    kind=Kind.MODULE,
    entry_point="BertEncoder",
    points=12,
    needs=("01_scaled_dot_product", "01_multi_head_attention"),
    masked=("course_lib.models", "course_lib.training"),
    ready_made=READY_MADE,
    wall_s=120,
    checks=(
        Check("names and shapes of all parameters", "parameters", 1, _parameters),
        Check("equal to BERT's formula, norm last", "norm last", 3, equal(norm_first=False)),
        Check("equal to the formula with the norm first", "norm first", 3, equal(norm_first=True)),
        Check("the mask reaches every layer", "masks", 1, _masked),
    ),
    hints=(
        "Two parts, each with a residual sum and a LayerNorm. Where does the sum take its second half from?",
        "Write one layer as a class of its own, with `attention`, `attention_norm`, `up`, `down` and "
        "`feed_forward_norm`; the stack is an nn.ModuleList called `layers`.",
        "Norm last: `attention_norm` of a sum, `hidden` and what `attention` makes of it under the mask. Norm first: "
        "the norm moves into the brackets of the part. Then the same once more, with `up`, `F.gelu` and `down`.",
    ),
)
