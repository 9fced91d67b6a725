"""Read TensorBoard's event files for the host: no student's Python is in this process, only bytes that one wrote."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor

Reply = tuple[dict[str, Any], list[RawTensor]]
EVERYTHING = {"scalars": 0, "histograms": 0, "graph": 0}


def load(_: Message) -> Callable[[Message], Reply]:
    """Calls take the bytes of event files, one tensor each, and tell what TensorBoard would show of them.

    A reply holds ``scalars``, for each tag the pairs of step and value in the order of the file, with None for a value
    that is not finite; ``graph_nodes``, the number of nodes in the model's graph; and ``histograms``, for each tag the
    number of them.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def answer(message: Message) -> Reply:
        with tempfile.TemporaryDirectory() as folder:
            for number, file in enumerate(message.tensors):
                (Path(folder) / f"events.out.tfevents.{number}").write_bytes(bytes(file.data))
            seen = EventAccumulator(folder, size_guidance=EVERYTHING, purge_orphaned_data=False)
            seen.Reload()
            tags = seen.Tags()
            scalars = {tag: [[e.step, _number(e.value)] for e in seen.Scalars(tag)] for tag in tags["scalars"]}
            nodes = len(seen.Graph().node) if tags["graph"] else 0
            histograms = {tag: len(seen.Histograms(tag)) for tag in tags["histograms"]}
        return {"scalars": scalars, "graph_nodes": nodes, "histograms": histograms}, []

    return answer


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
