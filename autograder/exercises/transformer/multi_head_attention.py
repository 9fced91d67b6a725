"""Exercise 01.2: multi-head self-attention as a module whose weights the host chooses."""

import math
from collections.abc import Iterator
from typing import Any

import torch

from autograder.exercises.programs.bert_formulas import State, attention, attention_shapes
from autograder.host import comparison
from autograder.host.checks.function_checks import agrees
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, Reply
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.kinds.module import Build, BuiltModule, ModuleAnswer, require_parameters

NAMES = ("the output",)


def draw_state(draw: Draw, hidden_size: int, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Return random weights, large enough that the probabilities are not nearly uniform."""
    scale = 1.5 / math.sqrt(hidden_size)
    return {name: draw.normal(*shape, scale=scale).to(dtype) for name, shape in attention_shapes(hidden_size).items()}


def _cut_without_transpose(part: torch.Tensor, heads: int) -> torch.Tensor:
    return part.reshape(part.shape[0], heads, part.shape[1], -1)


def _join_without_transpose(context: torch.Tensor) -> torch.Tensor:
    return context.reshape(context.shape[0], context.shape[2], -1)


def misconceptions(state: State, heads: int, hidden_size: int) -> tuple[Misconception, ...]:
    """Return common mistakes as wrong formulas on the same weights."""

    def wrong(says: str, **options: Any) -> Misconception:
        return Misconception(attention(state, heads, **options), says)

    transposed = "take (batch, sequence, heads, size) apart first, then move heads before sequence with transpose(1, 2)"
    return (
        wrong(
            f"The heads are cut by one reshape, so each head sees pieces of other tokens; {transposed}.",
            cut=_cut_without_transpose,
            join=_join_without_transpose,
        ),
        wrong(f"The heads are cut by one reshape; {transposed}.", cut=_cut_without_transpose),
        wrong(
            "The heads are not moved back behind the sequence before they are joined: transpose(1, 2), then flatten.",
            join=_join_without_transpose,
        ),
        wrong(
            "The scores are divided by the root of the hidden size; each head has its own, smaller size.",
            scale=hidden_size**-0.5,
        ),
        wrong("The scores are not scaled; divide them by the root of the head size.", scale=1.0),
        wrong("The last linear map, `output`, is not applied to the joined heads.", last=False),
        wrong("Query and key are swapped: a row of scores belongs to one query.", roles=("key", "query", "value")),
        Misconception(
            attention(state, 1), "All heads together make one table of scores; each head should have its own."
        ),
    )


def built(
    answer: ModuleAnswer, draw: Draw, hidden_size: int, heads: int, dtype: torch.dtype = torch.float32
) -> tuple[BuiltModule, State]:
    """Return the student's module with random weights, and these weights."""
    state = draw_state(draw, hidden_size, dtype)
    return answer.built(Build((hidden_size, heads)), state), state


def _parameters(answer: ModuleAnswer, draw: Draw) -> None:
    for hidden_size, heads in ((12, 3), (draw.choice((10, 14, 22)), 2)):
        require_parameters(answer.describe(Build((hidden_size, heads))), attention_shapes(hidden_size))


def _values(answer: ModuleAnswer, draw: Draw) -> None:
    module, state = built(answer, draw, 24, 4)
    agrees(attention(state, 4), _plain, NAMES, misconceptions(state, 4, 24))(module, draw)


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
    module, _ = built(answer, draw, 12, 3, torch.float64)
    hidden = draw.normal(2, 6, 12, dtype=torch.float64)
    hides, shows = draw.sample(range(6), 2)
    mask = torch.ones(2, 1, 1, 6, dtype=torch.bool)
    mask[..., hides] = False
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


def gradients_right(answer: ModuleAnswer, draw: Draw, hidden_size: int, heads: int) -> None:
    """Check that the gradients of the input and of every parameter equal those of the formula."""
    module, state = built(answer, draw, hidden_size, heads, torch.float64)
    hidden, cotangent = (draw.normal(2, 4, hidden_size, dtype=torch.float64) for _ in range(2))
    names = list(state)
    reply = module.call(Case((hidden,)), cotangents=[cotangent], wrt=[0], by=names)
    only(reply, hidden)
    leaves = [hidden.clone().requires_grad_(), *(state[name].clone().requires_grad_() for name in names)]
    output = attention(dict(zip(names, leaves[1:], strict=True)), heads)(leaves[0])
    truths = torch.autograd.grad(output, leaves, cotangent)
    for name, found, truth in zip(("the input", *names), reply.gradients, truths, strict=True):
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
    wall_s=120,
    checks=(
        Check("names and shapes of all parameters", "parameters", 1.6, _parameters),
        Check("equal to the formula, with the grader's weights", "values", 3, _values),
        Check("a masked token changes nothing elsewhere", "masks", 1.6, _mask_hides),
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
