"""Rounds under the host's clock: the loaded function, called on several problems in one request."""

from dataclasses import dataclass

from autograder.protocol.contract import Done, Request


@dataclass(frozen=True)
class Place:
    """Where a tensor lies in a block of a GPU's memory."""

    first_byte: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """A block of a GPU's memory, whose descriptor comes with the message."""

    size_bytes: int
    outputs: tuple[Place, ...]
    inputs: tuple[Place, ...]


@dataclass(frozen=True)
class LendOutputs(Request[Done]):
    """Lend memory for outputs: the tensors of the message, or those in a block; each problem has `each` of them."""

    each: int
    block: Block | None = None


@dataclass(frozen=True)
class HoldInputs(Request[Done]):
    """Keep the inputs of the next round; used only if no code in the worker could begin early."""


@dataclass(frozen=True)
class Captured:
    """Say whether rounds can be replayed."""

    replays: bool


@dataclass(frozen=True)
class CaptureRound(Request[Captured]):
    """Capture the calls on every problem in a CUDA graph; asked where no Python of a student runs in a round."""

    problems: int


@dataclass(frozen=True)
class RunRound(Request[Done]):
    """Call the function on every problem."""

    problems: int
    """The number of problems; each gets the same number of inputs, in order."""
    into: bool
    """Whether the function takes the outputs after its inputs and writes there."""
    skip: bool
    """Call nothing, but deliver outputs, so that the host can measure the cost of an empty round."""
    deliver: bool
    """Copy the results to the host's memory in the round itself; otherwise `FetchOutputs` does so later."""
    replays: int = 0
    """So many times to replay the captured round, which launches all of its kernels at once; 0 calls the function."""
    draws: int | None = None
    """The seed of the dropout masks of each problem, as in `CallGraph`; the time of such a round is not used."""


@dataclass(frozen=True)
class FetchOutputs(Request[Done]):
    """Copy the results of the last round to the host's memory."""
