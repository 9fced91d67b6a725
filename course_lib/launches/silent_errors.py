"""Name the mistakes around a replay that raise nothing and give wrong numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from course_lib.launches.replayed_graph import Graph


@dataclass(frozen=True)
class SilentError:
    """A mistake that a replay does not notice."""

    kind: str
    name: str
    """What the caller calls the tensor or number."""
    why: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}. {self.why}"


def silent_errors(
    graph: Graph,
    *,
    inputs: Mapping[str, torch.Tensor] | None = None,
    kept: Mapping[str, torch.Tensor] | None = None,
    numbers: Mapping[str, float] | None = None,
) -> tuple[SilentError, ...]:
    """Return what is wrong with the next replay of a graph, from what its caller means by it.

    `inputs` are the tensors that the replay is to read, `kept` are results that the caller still needs, `numbers` are
    Python numbers with the values that they ought to have now.

    >>> [str(each) for each in silent_errors(Graph(), inputs={"x": torch.ones(4)})]
    ['rebound input: x. No captured launch reads this memory; copy_ into the captured tensor.']
    """
    found = [
        SilentError("rebound input", name, "No captured launch reads this memory; copy_ into the captured tensor.")
        for name, tensor in (inputs or {}).items()
        if not graph.reads(tensor)
    ]
    found += [
        SilentError("overwritten output", name, "The next replay writes this memory; clone() what you keep.")
        for name, tensor in (kept or {}).items()
        if graph.writes(tensor)
    ]
    captured = {number for launch in graph.launches for number in launch.numbers}
    found += [
        SilentError("stale number", name, f"No launch holds {value}; keep the number in a tensor that you fill_().")
        for name, value in (numbers or {}).items()
        if value not in captured
    ]
    return tuple(found)
