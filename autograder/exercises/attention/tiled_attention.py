"""Exercise 13.3: attention in tiles, with the logarithm of each denominator kept for the backward pass.

The host captures four functions at fixed sizes, where a loop over tiles becomes one long graph. It runs the graphs in
a clean worker, and counts there how much memory is alive at once and how many products of tiles are computed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.attention.online_softmax import OF_SCORE, RING_ATTENTION
from autograder.exercises.programs.attention_formulas import (
    KNOWN_BACKWARD,
    KNOWN_FORWARD,
    TILE,
    Known,
    attention,
    gradients,
    summed_magnitudes,
)
from autograder.host import comparison
from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Reply
from autograder.host.kinds.captured import CapturedAnswer, outside
from autograder.host.session import AnswerFailedError

HEADS, WIDTH = 2, 8
NEAR: Mapping[str, float] = {"rtol": 1e-3, "atol": 1e-4}  # by which a known mistake is told
FAR = 800.0  # from zero; from 745 on an exponential overflows, or is zero, in double precision, too
FORWARD_OF_SCORE = OF_SCORE / 1.1  # as `OF_SCORE`, and small enough for a control in half precision to stay beyond it
RESULTS_ALIVE = 4  # tensors of the size of all results that a program may hold at once
WHOLE_SHARE = 0.5  # of a matrix of all scores; a program that allocates more is not tiled
PRODUCTS = {"forward": 2, "backward": 5}  # products of matrices for each tile
MARGIN = 1.2  # of the products; a column of ones beside the values is allowed, a sixth product is not

ARITHMETIC = (
    "add sub rsub mul div neg reciprocal square pow sqrt exp exp2 log log2 log1p expm1 maximum logaddexp clamp "
)
ARITHMETIC += "sigmoid softplus log_sigmoid_forward"  # of a difference of logarithms, where two results are merged
REDUCTIONS = "sum amax max mean logsumexp mm bmm matmul addmm baddbmm einsum"
MASKS = "arange where masked_fill eq ne lt le gt ge logical_and logical_or logical_not bitwise_and bitwise_or tril triu"
CHECKED = "bitwise_not isinf isnan nan_to_num abs clamp_min clamp_max fill scalar_tensor lift_fresh_copy minimum"
FORM = (
    "slice select narrow split split_with_sizes chunk unbind cat stack pad constant_pad_nd unsqueeze squeeze expand "
    "view reshape _unsafe_view transpose t permute to _to_copy clone contiguous alias detach zeros ones full "
    "zeros_like ones_like full_like new_zeros new_full new_ones slice_scatter copy zero flip"
)
ALLOWED = frozenset(
    f"torch.ops.aten.{name}{ending}"
    for name in f"{ARITHMETIC} {REDUCTIONS} {MASKS} {CHECKED} {FORM}".split()
    for ending in ("", "_")  # in place, too
) | {"operator.getitem"}


@dataclass(frozen=True)
class Sizes:
    """The sizes of one call."""

    queries: int
    keys: int
    causal: bool = False

    @property
    def whole(self) -> int:
        """Return the number of all scores."""
        return HEADS * self.queries * self.keys

    @property
    def tiles(self) -> int:
        """Return the number of tiles that hold a score that counts."""
        rows, columns = math.ceil(self.queries / TILE), math.ceil(self.keys / TILE)
        return rows * (rows + 1) // 2 if self.causal else rows * columns

    @property
    def told(self) -> str:
        """Return the end of a sentence about a call with these sizes."""
        return f"for {self.queries} queries and {self.keys} keys{', causal' * self.causal}"

    def member(self, name: str) -> str:
        """Return the name of the function in the answer."""
        return f"causal_{name}" if self.causal else name

    def inputs(self, draw: Draw, dtype: torch.dtype = torch.float32) -> list[Tensor]:
        """Return a random query, key and value."""
        lengths = (self.queries, self.keys, self.keys)
        return [draw.normal(HEADS, length, WIDTH, dtype=dtype, scale=1.5) for length in lengths]

    def far_inputs(self, draw: Draw) -> list[Tensor]:
        """Return a random query, key and value whose scores lie around `FAR` or `-FAR`.

        In one head all scores of a row lie at one end, in every second row at the other. In the other head, the first
        tile of keys lies at the other end than the rest: no number that is known after one tile serves for all.
        """
        query, key, value = self.inputs(draw)
        each = math.sqrt(FAR * math.sqrt(WIDTH))
        query[..., -1], key[..., -1] = each, each
        query[:, draw.integer(0, 1) :: 2, -1] = -each
        key[draw.integer(0, HEADS - 1), :TILE, -1] = -each
        return [query, key, value]


NAMES = {
    "forward": ("the output", "the logarithm of the denominators"),
    "backward": ("the gradient by query", "the gradient by key", "the gradient by value"),
}


def run_graph(answer: CapturedAnswer, name: str, sizes: Sizes, inputs: Sequence[Tensor]) -> Reply:
    """Return the results of a captured function with their cost; check its operators and that it works in tiles."""
    member = sizes.member(name)
    artifact = answer.capture(inputs, member=member, how="dispatch")
    told = f"`{member}` {sizes.told}: "
    _require_plain(artifact, len(inputs), told)
    try:
        reply = answer.run(artifact, inputs, count=True)
    except AnswerFailedError as error:
        raise CheckFailedError(f"{told}the captured graph does not run: {error.message[:300]}") from None
    if reply.mutated:
        raise CheckFailedError(f"{told}the captured graph writes into its input number {reply.mutated[0]}.")
    names = NAMES[name]
    if len(reply.outputs) != len(names):
        raise CheckFailedError(f"{told}got {len(reply.outputs)} tensors; expected {len(names)}: {', '.join(names)}.")
    _require_tiles(reply, sizes, told)
    return reply


def _require_plain(artifact: Artifact, inputs: int, told: str) -> None:
    if artifact.inputs != inputs:
        raise CheckFailedError(f"{told}the captured graph takes {artifact.inputs} inputs; expected {inputs}.")
    if other := outside(artifact, ALLOWED):
        name = other[0].removeprefix("torch.ops.")
        raise CheckFailedError(
            f"{told}the graph calls {name}. Write tiles with products, exponentials, sums and maxima; torch.zeros and "
            "torch.cat make the results."
        )


def _require_tiles(reply: Reply, sizes: Sizes, told: str) -> None:
    """Raise `CheckFailedError` if a program allocates about as much as a matrix of all scores."""
    size, most = reply.outputs[0].element_size(), _most_bytes(reply, sizes)
    if reply.counted.peak_bytes > most:
        raise CheckFailedError(
            f"{told}up to {reply.counted.peak_bytes:,} bytes are alive at once, and all scores together are "
            f"{size * sizes.whole:,}. Compute the scores in tiles of {TILE} queries and {TILE} keys, and keep none."
        )


def _most_bytes(reply: Reply, sizes: Sizes) -> int:
    """Return how many bytes may be alive at once; rows of scores have more where there are many tiles of keys."""
    scores = reply.outputs[0].element_size() * sizes.whole
    return int(WHOLE_SHARE * scores) + RESULTS_ALIVE * sum(output.nbytes for output in reply.outputs)


def require_forward(answer: CapturedAnswer, sizes: Sizes, inputs: Sequence[Tensor], numbers: Sequence[int]) -> Reply:
    """Raise `CheckFailedError` unless outputs `numbers` of a forward graph are right; return its reply."""
    reply = run_graph(answer, "forward", sizes, inputs)
    eager = attention(*inputs, causal=sizes.causal)
    exact = attention(*(i.double() for i in inputs), causal=sizes.causal)
    size = float(exact[1].abs().max()) * FORWARD_OF_SCORE
    for number in numbers:
        name = f"{sizes.member('forward')}: {NAMES['forward'][number]}"
        found, right, usual = reply.outputs[number], exact[number], eager[number]
        try:
            comparison.require_close(found, right, usual, name, f" {sizes.told}", magnitude=size)
        except CheckFailedError as error:
            known = KNOWN_FORWARD[number]
            raise CheckFailedError(_explained(found, usual, known, inputs, sizes, name) or str(error)) from None
    return reply


def require_backward(
    answer: CapturedAnswer, sizes: Sizes, inputs: Sequence[Tensor], numbers: Sequence[int], draw: Draw
) -> Reply:
    """Raise `CheckFailedError` unless outputs `numbers` of a backward graph are autograd's; return its reply."""
    output, lse = attention(*inputs, causal=sizes.causal)
    grad = draw.normal(*output.shape, dtype=output.dtype)
    reply = run_graph(answer, "backward", sizes, [grad, *inputs, output, lse])
    eager = gradients(grad, *inputs, causal=sizes.causal)
    exact = gradients(grad.double(), *(i.double() for i in inputs), causal=sizes.causal)
    summed = summed_magnitudes(grad, *inputs, causal=sizes.causal)
    for number in numbers:
        name = f"{sizes.member('backward')}: {NAMES['backward'][number]}"
        found, right, usual = reply.outputs[number], exact[number], eager[number]
        try:
            comparison.require_close(found, right, usual, name, f" {sizes.told}", magnitude=summed[number])
        except CheckFailedError as error:
            known = [
                (lambda *args, f=f, n=number, **options: f(grad, *args, **options)[n], s) for f, s in KNOWN_BACKWARD
            ]
            raise CheckFailedError(_explained(found, usual, known, inputs, sizes, name) or str(error)) from None
    return reply


def _explained(found: Tensor, right: Tensor, known: Known, inputs: Sequence[Tensor], sizes: Sizes, name: str) -> str:
    for formula, says in known:
        wrong: Any = formula(*inputs, causal=sizes.causal)
        if comparison.alike(found, wrong, **NEAR) and not comparison.alike(right, wrong, **NEAR):
            return f"{name} {sizes.told}: {says}"
    return ""


def forward_right(
    numbers: Sequence[int], *several: Sizes, far: bool = False, sides: bool = False
) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that these results of forward are right in all sizes; with `far`, for scores far from zero.

    With `sides`, no row of scores may be whole.
    """

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        for sizes in several:
            reply = require_forward(answer, sizes, sizes.far_inputs(draw) if far else sizes.inputs(draw), numbers)
            if sides:
                require_sides("forward", sizes, reply)

    return run


def backward_right(*several: Sizes, dtype: torch.dtype = torch.float32) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that all three gradients are right in all sizes."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        for sizes in several:
            require_backward(answer, sizes, sizes.inputs(draw, dtype), range(3), draw)

    return run


def require_products(name: str, sizes: Sizes, reply: Reply) -> None:
    """Raise `CheckFailedError` unless a graph multiplies matrices of tiles, and about as often as it needs."""
    require_sides(name, sizes, reply)
    one, enough = HEADS * 2 * TILE * TILE * WIDTH, PRODUCTS[name] * sizes.tiles
    if MARGIN * reply.counted.flops < enough * one:
        raise CheckFailedError(
            f"`{sizes.member(name)}` {sizes.told} computes {reply.counted.flops // one} products of a tile; "
            f"{PRODUCTS[name]} are needed for each of {sizes.tiles} tiles. Multiply matrices with @."
        )
    if reply.counted.flops >= MARGIN * enough * one:
        raise CheckFailedError(
            f"`{sizes.member(name)}` {sizes.told} computes {reply.counted.flops // one} products of a tile; "
            f"{enough} are enough, {PRODUCTS[name]} for each of {sizes.tiles} tiles. {_why(name, sizes)}"
        )


def require_sides(name: str, sizes: Sizes, reply: Reply) -> None:
    """Raise `CheckFailedError` if a graph multiplies a matrix with more rows or columns than a tile has."""
    side = reply.counted.longest_side
    if side > TILE:
        raise CheckFailedError(
            f"`{sizes.member(name)}` {sizes.told} multiplies matrices of up to {side} rows or columns; a tile has "
            f"{TILE}. Take {TILE} queries and {TILE} keys at a time: no row of scores is ever whole."
        )


def _why(name: str, sizes: Sizes) -> str:
    again = "Each tile's scores are computed once"
    if name == "backward":
        again += ", and its probabilities follow from them and the kept logarithm"
    skip = " A tile whose keys all come after its queries is masked as a whole: skip it." if sizes.causal else ""
    return f"{again}.{skip}"


def tight(answer: CapturedAnswer, draw: Draw) -> None:
    """Check that memory does not grow with the number of keys: one tile of queries, many tiles of keys."""
    sizes = Sizes(TILE, 6 * TILE)
    reply = require_forward(answer, sizes, sizes.far_inputs(draw), (0,))
    require_sides("forward", sizes, reply)
    answer.counted |= {"peak_bytes": reply.counted.peak_bytes, "peak_bytes_allowed": _most_bytes(reply, sizes)}


LENGTH = 3 * TILE

EXERCISE = Exercise(
    title="Attention in tiles",
    kind=Kind.CAPTURED,
    entry_point="tiled",
    points=14,
    wall_s=240,  # a graph of several hundred nodes takes seconds to record
    masked=("course_lib.fusion", "course_lib.models", "course_lib.kernels.triton", RING_ATTENTION),
    hints=(
        "Forward is the exercise before, with the scores of a tile computed where they are needed. Draw the tiles of "
        "four blocks of queries and keys, and cross out those that a causal mask hides.",
        "lse is the largest score plus the logarithm of the denominator. In backward, probabilities are "
        "exp(scores - lse). Each tile adds to one block of each gradient.",
        "With delta = (grad * output).sum(-1): by_scores = probabilities * (grad @ value^T - delta). Multiply by key "
        "for query's gradient, by query for key's, both times the scale; value's is probabilities^T @ grad.",
    ),
    checks=(
        Check("the output", "values", 1, forward_right((0,), Sizes(TILE + 8, 5 * TILE), far=True)),
        Check("the logarithm of the denominators", "logarithms", 1, forward_right((1,), Sizes(LENGTH, LENGTH))),
        Check(
            "causal output",
            "causal",
            1,
            forward_right((0,), Sizes(LENGTH, LENGTH, causal=True), far=True, sides=True),
        ),
        Check("the gradients", "gradients", 3, backward_right(Sizes(2 * TILE, LENGTH))),
        Check("memory does not grow with the keys", "memory", 1, tight),
    ),
)
