"""Exercise 13.4: score_mods and mask_mods of FlexAttention, and what their block masks hold.

A score_mod computes one score from a score and four indices. The host captures it on indices that broadcast, so its
graph computes all scores at once, and compares with dense tensors. Numbers of blocks are compared with PyTorch's own.
No formula stands here, since pasted it would be an answer: the hidden part sends the dense tensors as text.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.exercises.questions import Known, Question, kept
from autograder.host import comparison
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.captured import CapturedAnswer, outside, require_inputs
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError

POINTWISE = (
    "add sub rsub mul div neg abs tanh exp log sqrt pow clamp minimum maximum where masked_fill eq ne lt le gt ge "
    "logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor __and__ __or__ "
    "floor_divide remainder reciprocal sigmoid expm1 square clamp_min clamp_max "
    "sign sgn sinh cosh exp2 log1p addcmul addcdiv"
)
INDEXING = "index select gather take unsqueeze expand view reshape squeeze alias detach to _to_copy clone"
CONSTANTS = "lift_fresh_copy scalar_tensor full zeros_like ones_like full_like ones zeros"
ALLOWED = frozenset(f"torch.ops.aten.{name}" for name in f"{POINTWISE} {INDEXING} {CONSTANTS}".split())

changed = kept(__name__, "changed")
counted = kept(__name__, "counted")


@dataclass(frozen=True)
class Sizes:
    """The sizes of scores: (batch, heads, queries, keys)."""

    batch: int
    heads: int
    queries: int
    keys: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Return the shape of the scores."""
        return self.batch, self.heads, self.queries, self.keys

    def indices(self, draw: Draw) -> list[Tensor]:
        """Return the numbers of batch, head, query and key, each along its own dimension, and not in their order.

        FlexAttention passes single numbers, so a function may not take places for them.
        """
        found = []
        for at, size in enumerate(self.shape):
            order = draw.sample(range(size), size)
            numbers = order[::-1] if order == sorted(order) else order
            found.append(torch.tensor(numbers).view([-1 if d == at else 1 for d in range(4)]))
        return found


@dataclass(frozen=True)
class Modification:
    """A function of the answer, by what it gets before the indices."""

    draws: Callable[[Draw, Sizes], Tensor]
    masks: bool = False  # it takes no score, and tells what is kept


def packed(tensor: Tensor) -> str:
    """Return a tensor as text: its dtype, its shape, and its bytes in base64, shorter than its numbers."""
    dtype, shape = str(tensor.dtype).removeprefix("torch."), ",".join(map(str, tensor.shape))
    return f"{dtype} {shape} {base64.b64encode(tensor.contiguous().numpy().tobytes()).decode()}"


def unpacked(text: str) -> Tensor:
    """Return the tensor, which is not empty, that `packed` wrote.

    >>> unpacked(packed(torch.tensor([[1, 2]])))
    tensor([[1, 2]])
    """
    dtype, shape, values = text.split(" ")
    numbers = torch.frombuffer(bytearray(base64.b64decode(values)), dtype=getattr(torch, dtype))
    return numbers.view([int(size) for size in shape.split(",") if size])


def normal(draw: Draw, *shape: int, scale: float = 1.0) -> Tensor:
    """Return normal numbers in fp64, rounded: a logarithm may differ in its last bit between machines.

    A table of results is made on one machine, and its questions are drawn on others.
    """
    return (draw.normal(*shape, dtype=torch.float64, scale=scale) * 2**24).round() / 2**24


def documents_of(draw: Draw, sizes: Sizes) -> Tensor:
    """Return the number of each token's document: (batch, tokens), the documents of a row one after the other.

    The numbers have no order, and in row 0 they both rise and fall.
    """
    length = max(sizes.queries, sizes.keys)
    ends = draw.keep(sizes.batch, length, probability=0.3)
    ends[0, 0], ends[0, length // 3], ends[0, 2 * length // 3] = False, True, True
    numbers = draw.sample(range(1000), length + 1)
    low, middle, high = sorted(numbers[:3])
    numbers[:3] = draw.choice(((low, high, middle), (high, low, middle)))
    return torch.tensor(numbers)[ends.long().cumsum(1)]


MODIFICATIONS = {
    "alibi": Modification(
        lambda draw, sizes: 2.0 ** -(torch.arange(sizes.heads) + 1.0) + normal(draw, sizes.heads).abs()
    ),
    "soft_cap": Modification(lambda draw, sizes: torch.tensor(draw.choice((5.0, 7.5, 12.0)))),
    "documents": Modification(documents_of, masks=True),
}


def modifies(
    name: str, *several: Sizes, scale: float = 3.0, dtype: torch.dtype = torch.float32
) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that a function of the answer changes, or masks, all scores as its formula does."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        for sizes in several:
            _require_modified(answer, name, sizes, draw, scale, dtype)

    return run


def _require_modified(
    answer: CapturedAnswer, name: str, sizes: Sizes, draw: Draw, scale: float, dtype: torch.dtype
) -> None:
    modification = MODIFICATIONS[name]

    def drawn() -> list[Tensor]:
        parameter = modification.draws(draw, sizes)
        parameter = parameter.to(dtype) if parameter.is_floating_point() else parameter
        score = [] if modification.masks else [normal(draw, *sizes.shape, scale=scale).to(dtype)]
        return [parameter, *score, *sizes.indices(draw)]

    inputs = drawn()
    known: Known = changed(name, [packed(each) for each in inputs], list(sizes.shape))
    artifact = answer.capture(drawn(), member=name, how="dispatch")  # on other indices, too
    require_inputs(artifact, len(inputs), f"`{name}`: ")
    if other := outside(artifact, ALLOWED):
        raise CheckFailedError(
            f"`{name}`: the graph calls {other[0].removeprefix('torch.ops.')}. A score_mod computes one score from one "
            "score: arithmetic, comparisons, torch.where, and tensors that are indexed."
        )
    try:
        outputs = answer.run(artifact, inputs).outputs
    except AnswerFailedError as error:
        raise CheckFailedError(f"`{name}`: the captured graph does not run: {error.message[:300]}") from None
    if len(outputs) != 1:
        raise CheckFailedError(f"`{name}` returned {len(outputs)} tensors; expected one.")
    _require_equal(outputs[0], known, f"`{name}` for scores of shape {list(sizes.shape)}: ", sizes, dtype)


def _require_equal(found: Tensor, known: Known, told: str, sizes: Sizes, dtype: torch.dtype) -> None:
    exact = unpacked(known["right"])

    def as_found(values: Tensor) -> Tensor:
        return values.to(dtype) if values.is_floating_point() else values

    if found.dim() == len(sizes.shape) and all(
        mine in (1, n) for mine, n in zip(found.shape, sizes.shape, strict=True)
    ):
        found = found.expand(sizes.shape)  # a mask may be the same for all heads
    try:
        comparison.require_close(found, exact, as_found(exact), f"{told}the result")
    except CheckFailedError as error:
        for wrong, says in known["wrong"]:
            if comparison.alike(found, as_found(unpacked(wrong)), rtol=1e-2):
                raise CheckFailedError(f"{told}{says}") from None
        raise error from None


def question(draw: Draw, kind: str, *, whole: bool = True) -> Question:
    """Return a question about a block mask: its kind, the length, and the size of a block.

    With `whole`, the block divides the length.
    """
    block, blocks = draw.choice((4, 8, 16)), draw.integer(3, 9)
    length = block * blocks - (0 if whole else draw.integer(1, block - 1))
    asked: Question = {"mask": kind, "length": length, "block": block}
    if kind == "window":  # one more or one less changes a block
        asked["window"] = block * draw.integer(1, blocks - 2) + draw.choice((-1, 1))
    if kind == "documents":
        parts, left = [], length
        while left:
            parts.append(min(left, draw.integer(1, max(2, length // 3))))
            left -= parts[-1]
        asked["documents"] = parts
    return asked


def blocks_right(*kinds: str, whole: bool = True, rounds: int = 3) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that the blocks of masks of these kinds are counted."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        asked = [question(draw, kind, whole=whole) for kind in kinds for _ in range(rounds)]
        share_among(asked, lambda each: _require_counted(answer, each), noun="masks", together=True)

    return run


def _require_counted(answer: CapturedAnswer, asked: Question) -> None:
    found, about = answer.ask(dict(asked), member="blocks"), counted(dict(asked))
    if found != about["right"] or type(found) is not dict:
        why = named_mistake(found, about["wrong"])
        raise CheckFailedError(f"`blocks` of {dict(asked)}: {contrasted(found, about['right'])}. {why}".strip())


EXERCISE = Exercise(
    title="Modify and mask scores",
    kind=Kind.CAPTURED,
    entry_point="modifications",
    points=10,
    wall_s=60,
    hints=(
        "Write what happens to one score, with its four numbers. slopes[head] is that head's slope, ids[batch, query] "
        "the document of the query's token.",
        "ALiBi takes slope times distance away; a soft cap is a scaled tanh; a mask_mod returns a comparison, and two "
        "conditions are joined by &. For blocks, ask of each pair of blocks whether all, some or none of it is kept.",
        "A mask of length by length from arange, cut by .split(block, 0) and .split(block, 1): all() is full, any() "
        "without all() is partial. A last block that is cut off counts as partial where something of it is kept.",
    ),
    checks=(
        Check("`alibi`", "alibi", 1.5, modifies("alibi", Sizes(2, 3, 4, 5))),
        Check("`soft_cap`", "soft cap", 1, modifies("soft_cap", Sizes(2, 2, 4, 4), scale=8.0)),
        Check("`documents`", "documents", 1.5, modifies("documents", Sizes(3, 1, 8, 8))),
        Check("`blocks` of causal masks", "blocks", 2, blocks_right("causal")),
    ),
)
