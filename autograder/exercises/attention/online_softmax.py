"""Exercise 13.2: a weighted sum by softmax over blocks that arrive one after the other.

The host drives the loop. It captures the three functions of an answer, and calls the graphs on one block after the
other in a clean worker. Between two blocks only the state is kept, and its size is bounded, so no block is seen twice.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from autograder.host import comparison
from autograder.host.artifacts import Artifact
from autograder.host.comparison import alike
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.captured import CapturedAnswer
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError

RING_ATTENTION = "torch.distributed.tensor.experimental"
"""PyTorch's ring attention merges the results of two blocks."""
BEYOND = 8  # numbers that the state may hold besides its share for each row
ROWS, KEYS = 64, 32  # of a block, where memory is counted
TOO_LARGE = 2000.0  # the exponential of half of it overflows in double precision
OF_SCORE = 0.25  # a right form rounds each weight at the size of its score; with this share of it, by four units
OVERFLOWS = 88.0  # exponentials of larger scores overflow in single precision
NEAR: Mapping[str, float] = {"rtol": 1e-3, "atol": 1e-5}  # by which a known mistake is told
LARGEST_STATE = 2  # times the numbers of the smallest state; a larger one could hold blocks
BLOCKS_ALIVE = 4  # tensors of the size of a block that a step may hold at once
STATES_ALIVE = 4  # tensors of the size of the state that a step may hold at once

Formula = Callable[["Stream"], Tensor]


@dataclass(frozen=True)
class Stream:
    """Scores and values that arrive in blocks along the keys."""

    scores: Tensor  # (rows, keys)
    values: Tensor  # (keys, width)
    sizes: tuple[int, ...]  # keys of each block
    label: str

    def blocks(self) -> list[tuple[Tensor, Tensor]]:
        """Return scores and values of each block."""
        parts = zip(self.scores.split(self.sizes, 1), self.values.split(self.sizes), strict=True)
        return [(scores.contiguous(), values.contiguous()) for scores, values in parts]

    def double(self) -> "Stream":
        """Return the stream in double precision."""
        return Stream(self.scores.double(), self.values.double(), self.sizes, self.label)

    @property
    def state_numbers(self) -> int:
        """Return how many numbers the smallest state holds."""
        return self.scores.shape[0] * (self.values.shape[1] + 2)


def weighted(stream: Stream) -> Tensor:
    """Return softmax(scores) · values, with all blocks in memory."""
    return torch.softmax(stream.scores, -1) @ stream.values


def _largest_so_far(stream: Stream) -> Tensor:
    """Return for each score the largest one of its row, up to the end of its block."""
    of_blocks = torch.stack([scores.amax(1) for scores in stream.scores.split(stream.sizes, 1)], 1)
    return of_blocks.cummax(1).values.repeat_interleave(torch.tensor(stream.sizes), 1)


def _exponents(stream: Stream, *, rescaled: bool) -> Tensor:
    """Return the logarithms of all weights: under the largest score of the row, or under the largest one so far.

    With all blocks in memory, as in every formula of a mistake here: one that went from block to block would be an
    answer with a mistake.
    """
    largest = _largest_so_far(stream)
    return stream.scores - (largest[:, -1:] if rescaled else largest)


def _quotient(stream: Stream, top: Tensor, bottom: Tensor) -> Tensor:
    """Return the quotient of two sums over keys, with these logarithms of weights."""
    return torch.exp(top) @ stream.values / torch.exp(bottom).sum(1, keepdim=True)


def _rescaled(stream: Stream, *, top: bool, bottom: bool) -> Tensor:
    return _quotient(stream, _exponents(stream, rescaled=top), _exponents(stream, rescaled=bottom))


def _normalised_each_time(stream: Stream) -> Tensor:
    shares = [torch.softmax(scores, -1) @ values for scores, values in stream.blocks()]
    return torch.stack(shares).mean(0)


def _upside_down(stream: Stream) -> Tensor:
    largest = _largest_so_far(stream)
    exponents = _exponents(stream, rescaled=False) + (largest[:, -1:] - largest)
    return _quotient(stream, exponents, exponents)


def _over_last_block(stream: Stream) -> Tensor:
    exponents = _exponents(stream, rescaled=True)
    return _quotient(stream, exponents, exponents[:, -stream.sizes[-1] :])


KNOWN: tuple[tuple[Formula, str], ...] = (
    (
        lambda s: _rescaled(s, top=False, bottom=False),
        "Earlier blocks were never rescaled: their weights were computed under a smaller maximum. Multiply the "
        "denominator and the weighted sum by exp(old maximum - new maximum).",
    ),
    (
        lambda s: _rescaled(s, top=False, bottom=True),
        "The weighted sum was not rescaled, and the denominator was. Both were computed under the old maximum.",
    ),
    (
        lambda s: _rescaled(s, top=True, bottom=False),
        "The denominator was not rescaled, and the weighted sum was. Both were computed under the old maximum.",
    ),
    (_upside_down, "The factor is upside down: it is exp(old maximum - new maximum), which is at most 1."),
    (
        _normalised_each_time,
        "Each block was divided by its own denominator, and the results were averaged. A block counts as much as its "
        "weights; divide once, in finish.",
    ),
    (
        lambda s: torch.softmax(s.blocks()[-1][0], -1) @ s.blocks()[-1][1],
        "Only the last block is in the result: step begins from the state, and adds to it.",
    ),
    (
        _over_last_block,
        "The result was divided by the denominator of the last block: the state keeps that of all blocks so far.",
    ),
    (
        lambda s: torch.softmax(s.blocks()[0][0], -1) @ s.blocks()[0][1],
        "Only the first block is in the result: step returns the new state.",
    ),
    (
        lambda s: torch.exp(s.scores) @ s.values,
        "The result was not divided by the denominator; finish does that.",
    ),
    (
        lambda s: torch.exp(_exponents(s, rescaled=True)) @ s.values,
        "The result was not divided by the denominator; finish does that.",
    ),
)


@dataclass
class Driver:
    """Send the blocks of a stream through the graphs of an answer."""

    answer: CapturedAnswer
    largest_state: float = LARGEST_STATE
    peak_bytes: int = 0  # the most memory that one step allocated
    state_numbers: int = 0  # the most numbers that were kept between two blocks

    def run(self, stream: Stream) -> Tensor:
        """Return the result for a stream; raise `CheckFailedError` if a graph or its state is unusable."""
        state: tuple[Tensor, ...] = ()
        for number, block in enumerate(stream.blocks()):
            state = self._step("step" if number else "first", (*block, *state), stream, state)
        outputs = self._run("finish", state, stream)
        if len(outputs) != 1:
            raise CheckFailedError(f"`finish` returned {len(outputs)} tensors; expected one, of shape (rows, width).")
        return outputs[0]

    def _step(
        self, member: str, inputs: Sequence[Tensor], stream: Stream, before: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        state = self._run(member, inputs, stream)
        if before and [s.shape for s in state] != [s.shape for s in before]:
            raise CheckFailedError(
                f"`step` got a state of shapes {_shapes(before)} and returned {_shapes(state)}. The state keeps its "
                "shapes, however many blocks there were."
            )
        self.state_numbers = max(self.state_numbers, sum(s.nbytes for s in state) // stream.scores.element_size())
        if self.state_numbers > self.largest_state * stream.state_numbers + BEYOND:
            raise CheckFailedError(
                f"`{member}` returned a state of {self.state_numbers:,} numbers {_shapes(state)} for "
                f"{stream.scores.shape[0]} rows and values of width {stream.values.shape[1]}. A state keeps no scores: "
                f"{stream.state_numbers:,} numbers are enough, a maximum, denominator and weighted sum for each row."
            )
        return state

    def _run(self, member: str, inputs: Sequence[Tensor], stream: Stream) -> tuple[Tensor, ...]:
        artifact = self._captured(member, inputs)
        try:
            reply = self.answer.run(artifact, inputs, count=member == "step")
        except AnswerFailedError as error:
            raise CheckFailedError(
                f"The graph of `{member}` does not run {stream.label}: {error.message[:300]}"
            ) from None
        if reply.mutated:
            raise CheckFailedError(f"The graph of `{member}` writes into its input number {reply.mutated[0]}.")
        if member == "step":
            self.peak_bytes = max(self.peak_bytes, reply.counted.peak_bytes)
        return reply.outputs

    def _captured(self, member: str, inputs: Sequence[Tensor]) -> Artifact:
        artifact = self.answer.capture(inputs, member=member, how="dispatch")
        if artifact.inputs != len(inputs):
            raise CheckFailedError(f"The graph of `{member}` takes {artifact.inputs} inputs; expected {len(inputs)}.")
        return artifact


def _shapes(state: Iterable[Tensor]) -> str:
    return f"[{', '.join(str(tuple(s.shape)) for s in state)}]"[:160]


def require_streamed(driver: Driver, stream: Stream) -> None:
    """Raise `CheckFailedError` unless the graphs give the result of softmax over all blocks."""
    output, eager = driver.run(stream), weighted(stream)
    magnitude = OF_SCORE * float(stream.scores.nan_to_num(neginf=0).abs().max())
    try:
        comparison.require_close(
            output, weighted(stream.double()), eager, "The result", f" {stream.label}", magnitude=magnitude
        )
    except CheckFailedError as error:
        for formula, says in KNOWN:
            wrong = formula(stream)
            if alike(output, wrong, **NEAR) and not alike(wrong, eager, **NEAR):
                raise CheckFailedError(f"{stream.label[:1].upper()}{stream.label[1:]}: {says}") from None
        if not torch.isfinite(output).all():
            raise CheckFailedError(f"The result is not finite {stream.label}. {_reason(stream)}") from None
        raise error from None


def _reason(stream: Stream) -> str:
    if torch.isinf(stream.scores).any() and float(stream.scores.nan_to_num(neginf=0).abs().max()) < OVERFLOWS:
        return (
            "Where all scores of a row so far are -inf, its maximum is -inf too, and -inf - -inf is NaN. Subtract 0 "
            "there: exp(-inf) is 0, which is the weight of a masked key."
        )
    return (
        "exp of a large score overflows; subtract the largest score of the row so far, so that no exponent is above 0."
    )


def streams_right(streams: Callable[[Draw], Sequence[Stream]]) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that every stream gives the right result; the streams share its points."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        share_among(
            streams(draw),
            lambda stream: require_streamed(Driver(answer), stream),
            noun="streams",
            where=lambda stream: f"{stream.label}: ",
            together=True,
        )

    return run


def drawn(
    draw: Draw, rows: int, width: int, sizes: Sequence[int], *, scale: float = 2.0, dtype: torch.dtype = torch.float32
) -> Stream:
    """Return a stream of random scores and values, in blocks of these sizes."""
    keys = sum(sizes)
    label = f"for {len(sizes)} block{'s' * (len(sizes) > 1)} of {', '.join(map(str, dict.fromkeys(sizes)))} keys"
    scores = draw.normal(rows, keys, dtype=dtype, scale=scale)
    return Stream(scores, draw.normal(keys, width, dtype=dtype), tuple(sizes), label)


def shifted(draw: Draw, stream: Stream) -> Stream:
    """Return the stream with a drawn number added to all scores, which changes no result and overflows every exp.

    In one row the first block lies lower than the others: a maximum that never grows overflows there.
    """
    shift = draw.choice((-TOO_LARGE, TOO_LARGE)) / 2
    scores = stream.scores + shift
    if len(stream.sizes) > 1:
        scores[draw.integer(0, len(scores) - 1), : stream.sizes[0]] -= TOO_LARGE / 2
    return replace(stream, scores=scores, label=f"{stream.label}, and scores around {shift:g}")


def _plain(draw: Draw) -> list[Stream]:
    return [drawn(draw, 5, 3, (8, 8, 8, 8)), drawn(draw, 3, 4, (16, 16))]


def _large(draw: Draw) -> list[Stream]:
    """Return streams whose exponentials overflow, with the largest scores in each block, and in some rows."""
    found = []
    for place in range(3):
        stream = drawn(draw, 4, 3, (6, 6, 6))
        stream.scores[:, 6 * place : 6 * place + 6] += TOO_LARGE
        found.append(replace(stream, label=f"with scores around {TOO_LARGE:g} in block {place + 1}"))
    apart = drawn(draw, 4, 3, (5, 5, 5))
    scores = apart.scores + TOO_LARGE * torch.tensor(draw.sample((0, 1, 0, 1), 4))[:, None]
    return [*found, Stream(scores, apart.values, apart.sizes, "with rows whose scores lie far apart")]


def masked(draw: Draw, *, first: int, sizes: Sequence[int]) -> Stream:
    """Return a stream with masked keys; for every second row, the `first` keys are masked as a whole."""
    stream = drawn(draw, 6, 3, sizes)
    hidden = draw.keep(6, sum(sizes), probability=0.3)
    hidden[:, -1] = False
    hidden[::2, :first] = True
    scores = stream.scores.masked_fill(hidden, -torch.inf)
    label = f"with masked keys{f', the first {first} of some rows among them' if first else ''}"
    return Stream(scores, stream.values, stream.sizes, label)


def _masked_first(draw: Draw) -> list[Stream]:
    return [masked(draw, first=5, sizes=(5, 6, 6)), masked(draw, first=9, sizes=(4, 4, 4, 4))]


def _masked_later(draw: Draw) -> list[Stream]:
    stream = masked(draw, first=0, sizes=(8, 8, 8))
    stream.scores[:, 0] = 0.0  # so that the first block has a finite maximum in each row
    stream.scores[1::2, 8:16] = -torch.inf
    return [shifted(draw, stream)]


def _memory(answer: CapturedAnswer, draw: Draw) -> None:
    """Check what is kept between blocks, and what a step allocates, for streams of two lengths."""
    for count in (3, 6):
        stream = shifted(draw, drawn(draw, ROWS, 16, (KEYS,) * count))
        driver = Driver(answer)
        require_streamed(driver, stream)
        size = stream.scores.element_size()
        block, state = ROWS * KEYS * size, stream.state_numbers * size
        most = BLOCKS_ALIVE * block + STATES_ALIVE * state
        answer.counted |= {"peak_bytes_of_a_step": driver.peak_bytes, "peak_bytes_allowed": most}
        if driver.state_numbers > stream.state_numbers + BEYOND:
            raise CheckFailedError(
                f"Between two blocks {driver.state_numbers:,} numbers are kept; {stream.state_numbers:,} are enough: "
                "one maximum, one denominator and one weighted sum for each row."
            )
        if driver.peak_bytes > most:
            raise CheckFailedError(
                f"One step holds up to {driver.peak_bytes:,} bytes at once; {most:,} are allowed, {BLOCKS_ALIVE} times "
                f"a block of scores and {STATES_ALIVE} times the state. Multiply weights and values with @: a product "
                "by * and sum holds (rows, keys, width) numbers."
            )


EXERCISE = Exercise(
    title="Softmax over a stream",
    kind=Kind.CAPTURED,
    entry_point="streaming",
    points=12,
    masked=("course_lib.fusion", "course_lib.kernels.triton", RING_ATTENTION),
    hints=(
        "Write softmax of one row as a quotient of two sums over keys. Which of the two can be added up block by "
        "block, and what do both have to be relative to?",
        "The state is a maximum, a denominator and a weighted sum. A new block may raise the maximum; what was summed "
        "before was relative to the old one, so multiply it by exp(old - new) before you add.",
        "new = torch.maximum(old, scores.amax(1, keepdim=True)). Where new is -inf nothing was seen yet: subtract "
        "`torch.where(new == -torch.inf, 0.0, new)` in every exponent.",
    ),
    checks=(
        Check("blocks one after the other", "values", 0.5, streams_right(_plain)),
        Check("scores whose exponentials overflow", "large scores", 2, streams_right(_large)),
        Check("a masked block in the middle", "masks", 0.5, streams_right(_masked_later)),
        Check("rows whose first block is masked", "masks", 3, streams_right(_masked_first)),
        Check("the state, and the memory of a step", "memory", 2, _memory),
    ),
)
