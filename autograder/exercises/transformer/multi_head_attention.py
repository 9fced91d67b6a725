"""Exercise 01.2: multi-head self-attention as a module whose weights the host chooses."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from autograder.exercises.programs.bert_formulas import Formula, State, attention, attention_shapes
from autograder.exercises.transformer.scaled_dot_product import READY_MADE
from autograder.host import comparison
from autograder.host.checks.function_checks import agrees
from autograder.host.checks.known_mistakes import Mistake, mistakes_made, options_of, require_none_of
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, Reply, require_outputs
from autograder.host.kinds.module import Build, BuiltModule, ModuleAnswer, require_parameters
from autograder.host.session import AnswerFailedError

NAMES = ("the output",)


def draw_state(draw: Draw, hidden_size: int, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Return random weights, large enough that the probabilities are not nearly uniform."""
    scale = 1.5 / math.sqrt(hidden_size)
    return {name: draw.normal(*shape, scale=scale).to(dtype) for name, shape in attention_shapes(hidden_size).items()}


_TRANSPOSED = "take (batch, sequence, heads, size) apart first, then move heads before sequence with transpose(1, 2)"
MISTAKES = (
    Mistake(
        {"cut": "at once", "join": "at once"},
        f"The heads are cut by one reshape, so each head sees pieces of other tokens; {_TRANSPOSED}.",
        "values",
    ),
    Mistake(
        {"cut": "at once"},
        f"The heads are cut by one reshape, so each head sees pieces of other tokens; {_TRANSPOSED}.",
        "values",
    ),
    Mistake(
        {"join": "at once"},
        "The heads are not moved back behind the sequence before they are joined: transpose(1, 2), then flatten.",
        "values",
    ),
    Mistake(
        {"scale": "hidden size"},
        "The scores are divided by the root of the hidden size; each head has its own, smaller size.",
        "values",
    ),
    Mistake({"scale": "nothing"}, "The scores are not scaled; divide them by the root of the head size.", "values"),
    Mistake(
        {"scale": "head size squared"}, "The scores are divided by the head size; divide them by its root.", "values"
    ),
    Mistake({"last": False}, "The last linear map, `output`, is not applied to the joined heads.", "values"),
    Mistake(
        {"roles": ("key", "query", "value")},
        "Query and key are swapped: a row of scores belongs to one query.",
        "values",
    ),
    Mistake(
        {"roles": ("query", "key", "key")},
        "The context is made of the keys; the probabilities weigh the values.",
        "values",
    ),
    Mistake(
        {"roles": ("query", "query", "value")},
        "The scores compare queries with queries; they compare each query with the keys.",
        "values",
    ),
    Mistake(
        {"roles": ("key", "key", "value")},
        "The scores compare keys with keys; they compare each query with the keys.",
        "values",
    ),
    Mistake(
        {"one_table": True}, "All heads together make one table of scores; each head should have its own.", "values"
    ),
    Mistake(
        {"masks": "ignored"}, "A token that the mask hides changes the results of others: hand the mask on.", "masks"
    ),
    Mistake(
        {"masks": "inverted"},
        "A token that the mask hides changes the results of others. In the mask True means: may attend; set the "
        "scores of all others to minus infinity before softmax.",
        "masks",
    ),
)
"""Mistakes in attention; exercise 01.3, whose answers run after those of 01.2, grants them all."""


def _mistakes_of(answer: ModuleAnswer, draw: Draw) -> tuple[Mistake, ...] | None:
    """Return the known mistakes of an answer, found with one call; None if its result is an unknown one."""
    shared = draw.shared("one call")
    module, state = built(answer, shared, 12, 3)
    case = Case((shared.normal(2, 5, 12), half_hidden(2, 5)))
    return explaining(module, case, lambda options: attention(state, 3, **options), MISTAKES)


def half_hidden(batch: int, length: int) -> torch.Tensor:
    """Return a mask in which every sequence has tokens that are hidden and tokens that are not."""
    return (torch.arange(length) % 2 == 0).expand(batch, 1, 1, length).clone()


def explaining(
    module: BuiltModule, case: Case, formula: Callable[[Mapping[str, Any]], Formula], mistakes: Sequence[Mistake]
) -> tuple[Mistake, ...] | None:
    """Return the mistakes with which the formula gives what the module gives in this call; None if none do."""
    try:
        reply = module.call(case)
    except AnswerFailedError as error:
        if error.fatal:
            raise
        return None

    def gives(options: Mapping[str, Any]) -> bool:
        try:
            require_outputs(reply, case, formula(options), NAMES)
        except CheckFailedError:
            return False
        return True

    return mistakes_made(gives, mistakes)


def formula_options(answer: ModuleAnswer, draw: Draw, category: str) -> Mapping[str, Any]:
    """Return the options of the formula that the answer has to compute: its known mistakes.

    Raises `CheckFailedError` for a mistake that the check of `category` counts.
    """
    found = _mistakes_of(answer, draw) or ()
    require_none_of(category, found)
    return options_of(found)


def built(
    answer: ModuleAnswer,
    draw: Draw,
    hidden_size: int,
    heads: int,
    dtype: torch.dtype = torch.float32,
    *,
    training: bool = False,
) -> tuple[BuiltModule, State]:
    """Return the student's module with random weights, and these weights."""
    state = draw_state(draw, hidden_size, dtype)
    return answer.built(Build((hidden_size, heads)), state, training=training), state


def _parameters(answer: ModuleAnswer, draw: Draw) -> None:
    for hidden_size, heads in ((12, 3), (draw.choice((10, 14, 22)), 2)):
        require_parameters(answer.describe(Build((hidden_size, heads))), attention_shapes(hidden_size))


def _values(answer: ModuleAnswer, draw: Draw) -> None:
    module, state = built(answer, draw, 24, 4)
    agrees(attention(state, 4, **formula_options(answer, draw, "values")), _plain, NAMES)(module, draw)


def _plain(draw: Draw) -> Iterator[Case]:
    yield Case((draw.normal(2, 5, 24),), label="with 4 heads of size 6")
    yield Case((draw.normal(1, 4, 24),), label="with one sequence of as many tokens as heads")


def only(reply: Reply, like: torch.Tensor) -> torch.Tensor:
    """Return the only output, which must have the shape of the input."""
    if len(reply.outputs) != 1:
        raise CheckFailedError(f"forward returned {len(reply.outputs)} outputs; return the one tensor of new tokens.")
    comparison.require_form(reply.outputs[0], like, "the output")
    return reply.outputs[0]


def _mask_hides(answer: ModuleAnswer, draw: Draw) -> None:
    """Check that a masked token does not affect the results of other tokens, and that a visible token does."""
    options = formula_options(answer, draw, "masks")
    module, state = built(answer, draw, 12, 3, torch.float64)
    hidden = draw.normal(2, 6, 12, dtype=torch.float64)
    hides, shows = draw.sample(range(6), 2)
    mask = torch.ones(2, 1, 1, 6, dtype=torch.bool)
    mask[..., hides] = False
    if options:
        case = Case((hidden, mask), label="with a mask")
        require_outputs(module.call(case), case, attention(state, 3, **options), NAMES)
        return
    others = [i for i in range(6) if i not in (hides, shows)]
    outputs = []
    for changed in (None, hides, shows):
        varied = hidden.clone()
        if changed is not None:
            varied[:, changed] = draw.normal(2, 12, dtype=torch.float64)
        outputs.append(only(module.call(Case((varied, mask))), hidden)[:, others])
    plain, masked, seen = outputs
    if not torch.allclose(plain, masked, rtol=0, atol=1e-9):
        raise CheckFailedError(
            "A token that the mask hides changes the results of others. In the mask True means: may attend; set the "
            "scores of all others to minus infinity before softmax."
        )
    if torch.allclose(plain, seen, rtol=0, atol=1e-6):
        raise CheckFailedError("A token that the mask shows changes nothing in the results of others.")


def require_same_in_training(found: torch.Tensor, truth: torch.Tensor) -> None:
    """Raise `CheckFailedError` unless a module without dropout gives the formula's result in training mode, too."""
    scale = 16 * (1.0 + float(truth.abs().max()))
    try:
        comparison.require_rounded(found, truth, dtype=truth.dtype, scale=scale, what="the output in training mode")
    except CheckFailedError as error:
        raise CheckFailedError(f"{error} No dropout is asked for, so the mode makes no difference.") from None


def gradients_right(answer: ModuleAnswer, draw: Draw, hidden_size: int, heads: int, *, training: bool = False) -> None:
    """Check that the gradients of the input and of every parameter equal those of the formula."""
    options = formula_options(answer, draw, "gradients")
    module, state = built(answer, draw, hidden_size, heads, torch.float64, training=training)
    hidden, cotangent = (draw.normal(2, 4, hidden_size, dtype=torch.float64) for _ in range(2))
    names = list(state)
    reply = module.call(Case((hidden,)), cotangents=[cotangent], wrt=[0], by=names)
    only(reply, hidden)
    leaves = [hidden.clone().requires_grad_(), *(state[name].clone().requires_grad_() for name in names)]
    output = attention(dict(zip(names, leaves[1:], strict=True)), heads, **options)(leaves[0])
    if training:
        require_same_in_training(reply.outputs[0], output.detach())
    truths = torch.autograd.grad(output, leaves, cotangent, allow_unused=True, materialize_grads=True)
    for name, found, truth in zip(("the input", *names), reply.gradients, truths, strict=True):
        if found is None and not bool(truth.any()):
            continue  # a mistake that another check counts leaves this parameter out
        if found is None:
            raise CheckFailedError(f"No gradient reaches {name}; keep every step differentiable.")
        scale = float(truth.abs().max()) + 1.0  # the gradient of the key's bias is only rounding
        comparison.require_rounded(found, truth, dtype=truth.dtype, scale=scale * 16, what=f"the gradient by {name}")


def _gradients(answer: ModuleAnswer, draw: Draw) -> None:
    gradients_right(answer, draw, 8, 2)


EXERCISE = Exercise(
    title="Multi-head attention",
    kind=Kind.MODULE,
    entry_point="MultiHeadAttention",
    points=12,
    needs=("01_scaled_dot_product",),
    masked=("course_lib.models", "course_lib.training"),
    ready_made=READY_MADE,
    wall_s=120,
    checks=(
        Check("names and shapes of all parameters", "parameters", 1, _parameters),
        Check("equal to the formula, with the grader's weights", "values", 3, _values),
        Check("a masked token changes nothing elsewhere", "masks", 2, _mask_hides),
        Check("gradients by the input and every parameter", "gradients", 1, _gradients),
    ),
    hints=(
        "Write the shape after each line. Which one is (batch, heads, sequence, head size), and how did it get there?",
        "Four linear maps of the hidden size. Cut the last axis of three results into heads and sizes, and let heads "
        "and sequence change places; then attention works on each head alone.",
        "To cut: `part.view(batch, length, heads, -1).transpose(1, 2)`. To join: the same backwards, then the fourth "
        "map.",
    ),
)
