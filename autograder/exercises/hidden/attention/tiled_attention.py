"""Hidden checks and controls of exercise 13.3."""

from collections.abc import Sequence

import torch
from torch import Tensor

from autograder.exercises.attention.tiled_attention import (
    LENGTH,
    TILE,
    Sizes,
    attention,
    backward_right,
    forward_right,
    gradients,
    require_backward,
    require_forward,
    require_products,
    run_graph,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.host import comparison
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, HiddenPart
from autograder.host.kinds.captured import CapturedAnswer

RAGGED = 3 * TILE + 4
KEPT = "the scores of one part of the keys were given, with the logarithm of the denominators over all keys: "


def _skips(answer: CapturedAnswer, draw: Draw) -> None:
    """Check that hidden tiles are skipped, forward and backward."""
    sizes = Sizes(LENGTH, LENGTH, causal=True)
    require_products("forward", sizes, require_forward(answer, sizes, sizes.inputs(draw), (0,)))
    require_products("backward", sizes, require_backward(answer, sizes, sizes.inputs(draw), range(3), draw))


def _by_parts(answer: CapturedAnswer, draw: Draw) -> None:
    """Check that backward uses the logarithm that it gets: keys in two parts, as on two devices."""
    sizes = Sizes(2 * TILE, 6 * TILE)
    query, key, value = inputs = sizes.inputs(draw)
    output, lse = attention(query, key, value, causal=False)
    grad = draw.normal(*output.shape)
    part = Sizes(2 * TILE, 3 * TILE)
    found: list[Sequence[Tensor]] = []
    for keys, values in zip(key.chunk(2, 1), value.chunk(2, 1), strict=True):
        given = [grad, query, keys.contiguous(), values.contiguous(), output, lse]
        reply = run_graph(answer, "backward", part, given)
        require_products("backward", part, reply)
        found.append(reply.outputs)
    joined = (
        found[0][0] + found[1][0],
        *(torch.cat([a, b], 1) for a, b in zip(found[0][1:], found[1][1:], strict=True)),
    )
    eager = gradients(grad, *inputs, causal=False)
    exact = gradients(grad.double(), *(i.double() for i in inputs), causal=False)
    for mine, right, usual, name in zip(joined, exact, eager, ("query", "key", "value"), strict=True):
        try:
            comparison.require_close(mine, right, usual, f"the gradient by {name}")
        except CheckFailedError as error:
            raise CheckFailedError(
                f"`backward`: {KEPT}{error} Use the logarithm and the output that are given."
            ) from None


ANSWERS = Answers(__name__)
SCORES = "query[:, i:i + 32] @ key[:, j:j + 32].mT * scale"
SKIP = "if causal and j > i:\n                    break"
FORWARD_SKIP = "for j in range(0, i + 32 if causal else key.shape[1], 32)"

HIDDEN = HiddenPart(
    checks=(
        Check("tiles that a mask hides", "skipped tiles", 1.8, _skips),
        Check(
            "lengths that are no multiple of a tile",
            "ragged lengths",
            1.2,
            forward_right((0, 1), Sizes(RAGGED, RAGGED, causal=True), Sizes(40, RAGGED)),
        ),
        Check(
            "gradients, causal and of ragged lengths",
            "gradients",
            1.4,
            backward_right(Sizes(RAGGED, RAGGED, causal=True)),
        ),
        Check("keys in two parts", "logarithms", 1.2, _by_parts),
    ),
    controls=(
        ANSWERS.reference(14),
        ANSWERS.file("keys outside", 14),
        ANSWERS.file("merges results", 14),
        ANSWERS.file("writes into slices", 14),
        ANSWERS.file("einsum", 14),
        ANSWERS.file("chunks", 14),
        ANSWERS.file("two passes", 12.2),
        ANSWERS.file("transposed", 14),
        ANSWERS.file("dense", 0),
        ANSWERS.file("the library", 0),
        ANSWERS.file("autograd", 7.2),
        ANSWERS.file("whole rows", 11.8),
    ),
)
