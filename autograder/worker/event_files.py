"""Read TensorBoard's event files for the host: no student's Python is in this process, only bytes that one wrote."""

import math
import tempfile
from pathlib import Path

from autograder.protocol import Result
from autograder.protocol.requests.loads import EventsRead, LoadEvents, ReadEvents
from autograder.worker.handlers import Handlers, Tensors

EVERYTHING = {"scalars": 0, "histograms": 0, "graph": 0}


def load_events(_: LoadEvents, __: Tensors) -> Handlers:
    """Load TensorBoard's reader; requests bring the bytes of event files."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def read(_: ReadEvents, tensors: Tensors) -> Result[EventsRead]:
        with tempfile.TemporaryDirectory() as folder:
            for number, file in enumerate(tensors):
                (Path(folder) / f"events.out.tfevents.{number}").write_bytes(bytes(file.data))
            seen = EventAccumulator(folder, size_guidance=EVERYTHING, purge_orphaned_data=False)
            seen.Reload()
            tags = seen.Tags()
            scalars = {tag: tuple((e.step, _number(e.value)) for e in seen.Scalars(tag)) for tag in tags["scalars"]}
            nodes = len(seen.Graph().node) if tags["graph"] else 0
            histograms = {tag: len(seen.Histograms(tag)) for tag in tags["histograms"]}
        return Result(EventsRead(scalars, nodes, histograms))

    return {ReadEvents: read}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
