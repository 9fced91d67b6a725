"""Hidden checks and controls of exercise 13.3."""

from collections.abc import Sequence

import torch
from torch import Tensor

from autograder.exercises.attention.tiled_attention import (
    LENGTH,
    NAMES,
    Sizes,
    backward_right,
    forward_right,
    require_backward,
    require_forward,
    require_products,
    run_graph,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.attention_formulas import TILE, attention, gradients, summed_magnitudes
from autograder.host import comparison
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Control, HiddenPart
from autograder.host.kinds.captured import CapturedAnswer

RAGGED = 3 * TILE + 4
KEPT = "the scores of one part of the keys were given, with the logarithm of the denominators over all keys: "


def _skips(answer: CapturedAnswer, draw: Draw) -> None:
    """Check that hidden tiles are skipped, forward and backward."""
    sizes = Sizes(LENGTH, LENGTH, causal=True)
    require_products("forward", sizes, require_forward(answer, sizes, sizes.far_inputs(draw), (0,)))
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
        for gradient, like, name in zip(reply.outputs, (query, keys, values), NAMES["backward"], strict=True):
            comparison.require_form(gradient, like, f"`backward`: {name}")
        found.append(reply.outputs)
    joined = (
        found[0][0] + found[1][0],
        *(torch.cat([a, b], 1) for a, b in zip(found[0][1:], found[1][1:], strict=True)),
    )
    eager = gradients(grad, *inputs, causal=False)
    exact = gradients(grad.double(), *(i.double() for i in inputs), causal=False)
    summed = summed_magnitudes(grad, *inputs, causal=False)
    for mine, right, usual, name, size in zip(joined, exact, eager, ("query", "key", "value"), summed, strict=True):
        try:
            comparison.require_close(mine, right, usual, f"the gradient by {name}", magnitude=size)
        except CheckFailedError as error:
            raise CheckFailedError(
                f"`backward`: {KEPT}{error} Use the logarithm and the output that are given."
            ) from None


ANSWERS = Answers(__name__)
SCORES = "query[:, rows] @ key[:, columns].mT * query.shape[-1] ** (-0.5)"
HIDDEN_PART = "torch.full_like(scores, -torch.inf).triu(1) if causal and i == j else 0.0"
ALL_TILES = "0, i + 1 if causal else key.shape[1], 32"
WEIGHTED = "torch.exp(scores - new[..., None]) @ value[:, columns]"
LIBRARY = """
def tiled():
    def forward(q, k, v):
        output = F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
        return output, torch.logsumexp(q @ k.mT / math.sqrt(q.shape[-1]), -1)

    return dict.fromkeys(("forward", "causal_forward", "backward", "causal_backward"), forward)
"""
BY_AUTOGRAD = """
    def backward(grad, query, key, value, output, lse, causal=False):
        leaves = [each.detach().requires_grad_() for each in (query, key, value)]
        with torch.enable_grad():
            out, _ = forward(*leaves, causal=causal)
        return torch.autograd.grad(out, leaves, grad)
    both = """
ROWS_BY_TILES = """
    def forward(query, key, value, causal=False):
        output, lse = torch.zeros_like(query), torch.zeros_like(query[..., 0])
        for i in range(0, query.shape[1], 32):
            rows, end = slice(i, i + 32), min(i + 32, key.shape[1]) if causal else key.shape[1]
            scores = torch.zeros(len(query), query[:, rows].shape[1], end)
            for part, keys in zip(scores.split(32, 2), key[:, :end].split(32, 1), strict=True):
                part.baddbmm_(query[:, rows], keys.mT, beta=0, alpha=query.shape[-1] ** -0.5)
            if causal:
                scores[..., i:] += torch.full((scores.shape[1], end - i), -torch.inf).triu(1)
            lse[:, rows] = scores.logsumexp(-1)
            scores.sub_(lse[:, rows, None]).exp_()
            for part, values in zip(scores.split(32, 2), value[:, :end].split(32, 1), strict=True):
                output[:, rows].baddbmm_(part, values)
        return output, lse
    both = """

HIDDEN = HiddenPart(
    checks=(
        Check("tiles that a mask hides", "skipped tiles", 4, _skips),
        Check(
            "lengths that are no multiple of a tile",
            "ragged lengths",
            1,
            forward_right((0, 1), Sizes(RAGGED, RAGGED, causal=True), Sizes(40, RAGGED), far=True, sides=True),
        ),
        Check(
            "gradients, causal and of ragged lengths",
            "gradients",
            1,
            backward_right(Sizes(RAGGED, RAGGED, causal=True)),
        ),
        Check("keys in two parts", "logarithms", 1, _by_parts),
    ),
    right_here=dict.fromkeys(("wrong in the first output only", "NaN"), "the logarithm has a check of its own"),
    controls=(
        ANSWERS.reference(14),
        ANSWERS.file("keys outside", 14),
        ANSWERS.file("merges results", 14),
        ANSWERS.edited(
            "einsum",
            14,
            (SCORES, "torch.einsum('hqw,hkw->hqk', query[:, rows], key[:, columns]) / math.sqrt(query.shape[-1])"),
            (WEIGHTED, "torch.einsum('hqk,hkw->hqw', torch.exp(scores - new[..., None]), value[:, columns])"),
        ),
        ANSWERS.edited(
            "queries scaled first", 14, (SCORES, "query[:, rows] * query.shape[-1] ** -0.5 @ key[:, columns].mT")
        ),
        ANSWERS.edited(
            "where on positions",
            14,
            (
                "yield (rows, columns, scores + hidden)",
                "at = torch.arange(scores.shape[-1])\n                seen = at <= at[:scores.shape[1], None]\n"
                "                scores = torch.where(seen, scores, -torch.inf) if causal and i == j else scores\n"
                "                yield (rows, columns, scores)",
            ),
        ),
        ANSWERS.edited(
            "delta by einsum",
            14,
            ("(grad * output).sum(-1, keepdim=True)", "torch.einsum('hqw,hqw->hq', grad, output)[..., None]"),
        ),
        ANSWERS.edited(
            "scaled where it is used",
            14,
            (" - delta[:, rows]) * query.shape[-1] ** (-0.5)", " - delta[:, rows]) / math.sqrt(key.shape[-1])"),
        ),
        ANSWERS.edited(
            "writes into empty tensors",
            14,
            ("torch.zeros_like(query), torch.full_like", "torch.empty_like(query), torch.full_like"),
            (
                "new = torch.logaddexp",
                "output[:, rows] = output[:, rows].nan_to_num(0)\n            new = torch.logaddexp",
            ),
        ),
        ANSWERS.edited("by bmm", 14, ("by_scores @ key[:, columns]", "torch.bmm(by_scores, key[:, columns])")),
        ANSWERS.file("dense", 0),
        Control("the library", LIBRARY, 0),
        ANSWERS.edited(
            "weights in half precision",
            6,
            (WEIGHTED, "(torch.exp(scores - new[..., None]).half() @ value[:, columns].half()).float()"),
        ),
        ANSWERS.file("whole rows", 6),
        ANSWERS.edited("whole rows, computed by tiles", 11, ("\n    both = ", ROWS_BY_TILES)),
        ANSWERS.file("the first tile decides", 6),
        ANSWERS.edited(
            "a gradient of another shape", 5, ("return (by_query, by_key", "return (by_query, by_key.sum()")
        ),
        ANSWERS.edited("autograd", 5, ("\n    both = ", BY_AUTOGRAD)),
        ANSWERS.edited(
            "skips nothing",
            10,
            (ALL_TILES, "0, key.shape[1], 32"),
            (HIDDEN_PART, "torch.full_like(scores, -torch.inf).triu(1 + i - j) if causal else 0.0"),
            trap="Hidden tiles are skipped.",
        ),
        ANSWERS.edited(
            "scores computed twice",
            9,
            (SCORES, f"0.5 * ({SCORES} + {SCORES})"),
            trap="2 a tile forward",
        ),
        ANSWERS.edited("scores not scaled", 0, (SCORES, "query[:, rows] @ key[:, columns].mT")),
        ANSWERS.edited(
            "gradients not scaled", 5, (" - delta[:, rows]) * query.shape[-1] ** (-0.5)", " - delta[:, rows])")
        ),
        ANSWERS.edited("denominators as constants", 5, (" - delta[:, rows])", ")")),
        ANSWERS.edited("one key too many", 7, (".triu(1)", ".triu(2)")),
        ANSWERS.edited("lse to base 2", 12, ("return (output, lse)", "return (output, lse / math.log(2))")),
        ANSWERS.edited("the largest score as lse", 12, ("return (output, lse)", "return (output, lse * 0)")),
        ANSWERS.edited("only the last tile's gradient", 5, ("by_query[:, rows] +=", "by_query[:, rows] =")),
        ANSWERS.edited("shares and gradients swapped", 5, ("shares.mT @ grad", "by_scores.mT @ grad")),
        ANSWERS.edited(
            "computes lse again",
            11,
            ("delta = (grad * output)", "lse = forward(query, key, value, causal)[1]\n        delta = (grad * output)"),
            below=True,
            trap="It uses the LSE that it gets.",
        ),
        ANSWERS.edited(
            "earlier tiles not rescaled",
            6,
            ("output[:, rows] * torch.exp(lse[:, rows] - new)[..., None]", "output[:, rows]"),
        ),
    ),
)
