"""The work of all passes grows as the graph does: counted, not timed, so that a busy machine changes nothing."""

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.capture import capture
from course_lib.fusion import fuse
from course_lib.fusion.fuse import run_all
from course_lib.fusion.registry import chosen
from course_lib.fusion.storage import mutating_nodes
from course_lib.fusion.surgery import copy_of
from course_lib.graph import propagate_shapes
from course_lib.models import TransformerConfig, TransformerEncoder

Tensor = torch.Tensor
DEPTHS = (2, 4, 8)
TOLERANCE = 1.02  # of twice the work
# Finds anew which memory is whose for each change in place, because its rewrites change that.
NOT_LINEAR = ("out_of_place",)


class Meter:
    """Counts calls that functions of course_lib.fusion make, and nodes that anybody visits in a graph."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work = 0
        nodes, find = type(fx.Graph().nodes), fx.Graph.find_nodes
        iterate = nodes.__iter__

        def visited(one: Any) -> Iterator[fx.Node]:
            for node in iterate(one):
                self.work += 1
                yield node

        def found(graph: fx.Graph, **what: Any) -> list[fx.Node]:
            result = list(find(graph, **what))
            self.work += len(result)
            return result

        monkeypatch.setattr(nodes, "__iter__", visited)
        monkeypatch.setattr(fx.Graph, "find_nodes", found)

    def of(self, program: Callable[[], object]) -> int:
        """Return how much is done while `program` runs."""

        def count(frame: FrameType, event: str, argument: object) -> None:
            self.work += "course_lib/fusion" in frame.f_code.co_filename and event in ("call", "c_call")

        self.work = 0
        sys.setprofile(count)
        try:
            program()
        finally:
            sys.setprofile(None)
        return self.work


def _encoder(layers: int) -> tuple[Any, tuple[Tensor, ...]]:
    config = TransformerConfig(
        hidden_size=8, num_heads=2, intermediate_size=8, num_layers=layers, vocab_size=10, max_positions=8
    )
    return capture(TransformerEncoder(config), concrete_args={"mask": None}).graph_module, (
        torch.zeros(1, 4, dtype=torch.int64),
    )


class Awkward(nn.Module):
    """Reads its parameters everywhere, writes in place, repeats itself, and looks like what cannot be fused."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers, self.bias, self.norm = layers, nn.Parameter(torch.randn(4)), nn.LayerNorm(4)

    def forward(self, x: Tensor) -> Tensor:
        first = x
        for _ in range(self.layers):
            h = F.gelu(x + self.bias)
            h = h.mul_(2) + torch.ones(4) + torch.relu(first)
            x = self.norm(F.gelu(torch.add(h, self.bias, alpha=2)) + F.dropout(x, 0.1))
        return x


def _awkward(layers: int) -> tuple[Any, tuple[Tensor, ...]]:
    return fx.symbolic_trace(Awkward(layers)), (torch.randn(3, 4),)


@pytest.mark.parametrize("graph", [_encoder, _awkward])
def test_twice_the_layers_are_twice_the_work(
    graph: Callable[[int], tuple[Any, tuple[Tensor, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fuse(*graph(1))  # tables that are made once
    meter = Meter(monkeypatch)
    known = [propagate_shapes(copy_of(gm), inputs) for gm, inputs in map(graph, DEPTHS)]
    passes = [one for one in chosen(None, "exact") if one.name not in NOT_LINEAR]
    small, middle, large = (meter.of(lambda gm=gm: run_all(passes, gm)) for gm in known)  # type: ignore[misc]
    assert 0 < large - middle <= TOLERANCE * 2 * (middle - small), f"{small}, {middle}, {large}"


def test_twice_the_layers_are_twice_the_looks_at_effects_where_no_shapes_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutating_nodes(_encoder(1)[0].graph)  # tables that are made once
    meter = Meter(monkeypatch)
    graphs = [_encoder(layers)[0].graph for layers in DEPTHS]
    small, middle, large = (meter.of(lambda graph=graph: mutating_nodes(graph)) for graph in graphs)  # type: ignore[misc]
    assert 0 < large - middle <= TOLERANCE * 2 * (middle - small), f"{small}, {middle}, {large}"
