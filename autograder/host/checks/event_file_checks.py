"""TensorBoard's event files that an answer wrote: bytes to the host, read in a clean worker, checked as data."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from autograder.host import shared_inputs
from autograder.host.exercise import CheckFailedError
from autograder.host.session import AnswerFailedError, Session
from autograder.protocol.requests.loads import EventsRead, LoadEvents, ReadEvents

MAX_BYTES = 4 << 20
Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Events:
    """The content of event files, as TensorBoard shows it."""

    scalars: Mapping[str, Points]  # of each tag, step and value in the order in which they were written
    graph_nodes: int  # 0 if there is no graph
    histograms: Mapping[str, int]  # how many of each tag


def read_events(clean: Session, files: Mapping[str, bytes]) -> Events:
    """Read every event file among `files`; raises `CheckFailedError` if there is none, or none that can be read."""
    found = {name: data for name, data in files.items() if "tfevents" in name}
    if not found:
        raise CheckFailedError(
            "There is no event file in the folder; open SummaryWriter(folder), and close it at the end."
        )
    if sum(map(len, found.values())) > MAX_BYTES:
        raise CheckFailedError(f"The event files are larger than {MAX_BYTES >> 20} MB; write less into them.")
    clean.reload(LoadEvents(), ())
    tensors = [torch.frombuffer(bytearray(data or b"\0"), dtype=torch.uint8) for data in found.values()]
    try:
        body = clean.call_with(ReadEvents(), [shared_inputs.to_raw(t) for t in tensors]).body
    except AnswerFailedError as error:
        raise CheckFailedError(f"TensorBoard cannot read the event files: {error.message}") from None
    return _events(body)


def _events(found: EventsRead) -> Events:
    scalars = {
        tag: tuple((step, math.nan if value is None else value) for step, value in points)
        for tag, points in found.scalars.items()
    }
    return Events(scalars, found.graph_nodes, found.histograms)
