"""TensorBoard's event files that an answer wrote: bytes to the host, read in a clean worker, checked as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from autograder.host import shared_inputs
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import CheckFailedError
from autograder.host.session import AnswerFailedError, Session

MAX_BYTES = 4 << 20
Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Events:
    """What TensorBoard would show."""

    scalars: Mapping[str, Points]  # of each tag, step and value in the order in which they were written
    graph_nodes: int  # 0 if there is no graph
    histograms: Mapping[str, int]  # how many of each tag


def read_events(clean: Session, files: Mapping[str, bytes]) -> Events:
    """Read every event file among ``files``; raises `CheckFailedError` if there is none, or none that can be read."""
    found = {name: data for name, data in files.items() if "tfevents" in name}
    if not found:
        raise CheckFailedError(
            "There is no event file in the folder; open SummaryWriter(folder), and close it at the end."
        )
    if sum(map(len, found.values())) > MAX_BYTES:
        raise CheckFailedError(f"The event files are larger than {MAX_BYTES >> 20} MB; write less into them.")
    clean.reload({"mode": "events"}, ())
    tensors = [torch.frombuffer(bytearray(data or b"\0"), dtype=torch.uint8) for data in found.values()]
    try:
        body = clean.call_with({}, [shared_inputs.to_raw(t) for t in tensors]).body
    except AnswerFailedError as error:
        raise CheckFailedError(f"TensorBoard cannot read the event files: {error.message}") from None
    return _events(body)


def _events(body: dict[str, Any]) -> Events:
    scalars, nodes, histograms = (body.get(key) for key in ("scalars", "graph_nodes", "histograms"))
    if type(scalars) is not dict or type(nodes) is not int or type(histograms) is not dict:
        raise MalformedAnswerError("The worker sent a reply of another form.")
    return Events({tag: _points(points) for tag, points in scalars.items()}, nodes, histograms)


def _points(points: Any) -> Points:
    if type(points) is not list or not all(
        type(p) is list and len(p) == 2 and type(p[0]) is int and (p[1] is None or type(p[1]) is float) for p in points
    ):
        raise MalformedAnswerError("The worker sent a reply of another form.")
    return tuple((step, math.nan if value is None else value) for step, value in points)
