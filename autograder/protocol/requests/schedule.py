"""Schedule: a model to the graph of what a schedule builds of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.protocol.contract import Json, Request, TensorName
from autograder.protocol.requests.graph import WrittenGraph


@dataclass(frozen=True)
class Schedule(Request[WrittenGraph]):
    """Build the model, have it scheduled, and trace it."""

    text: str
    """The model's source, which defines `Encoder`."""
    arguments: Mapping[str, Json]
    """How the `Encoder` is made."""
    state: tuple[TensorName, ...]
    """The names of its tensors, which come with the request."""
    training: bool
    """The mode in which the result is traced."""
    scheduled_in_training: bool
    """The mode before that, in which the answer has the model."""
    question: tuple[Json, ...]
    """What the answer is called with after the schedule."""
    times: int
    """How often it is called."""
    part: str
    """The path of the part whose graph is meant, which the answer must have traced; empty for the model."""
    leaves: tuple[str, ...]
    """Classes that are kept whole where the model is traced before the answer is called; see `operator`."""
    operator: str
    """For answers that only find: the operator of `course_lib.kernels` onto which the matches are fused.

    The model is then traced before the answer is called, with every bias separated. Empty for all others.
    """
