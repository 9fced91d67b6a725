"""Test capture and replay on the simulator: what equals eager, what raises, and what goes wrong silently."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.errors import LaunchError
from course_lib.launches import (
    ColdStartError,
    Graph,
    GraphStateError,
    HostReadError,
    RandomStateError,
    is_capturing,
    recording,
    replayed_graph,
    silent_errors,
    warm_up,
)


def captured(program: Callable[[], torch.Tensor]) -> tuple[Graph, torch.Tensor]:
    with warm_up():
        program()
    graph = Graph()
    with graph:
        out = program()
    return graph, out


def test_a_replay_equals_eager_after_a_copy_into_the_static_input() -> None:
    layer = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16))
    static = torch.randn(4, 8)
    graph, out = captured(lambda: layer(static))
    batch = torch.randn(4, 8)
    static.copy_(batch)
    graph.replay()
    assert torch.equal(out, layer(batch))


def test_a_rebound_input_is_ignored_and_named() -> None:
    x = torch.ones(3)
    graph, out = captured(lambda: x * 2)
    captured_x = x
    x = torch.full((3,), 5.0)
    graph.replay()
    assert out.tolist() == [2, 2, 2]
    assert [each.kind for each in silent_errors(graph, inputs={"x": x})] == ["rebound input"]
    assert not silent_errors(graph, inputs={"x": captured_x})


def test_a_kept_output_is_overwritten_and_named() -> None:
    x = torch.ones(3)
    graph, out = captured(lambda: x + 1)
    graph.replay()
    copy = out.clone()
    x.fill_(9)
    graph.replay()
    assert out.tolist() == [10, 10, 10]
    assert copy.tolist() == [2, 2, 2]
    assert [each.name for each in silent_errors(graph, kept={"out": out, "copy": copy})] == ["out"]


def test_a_python_number_stays_as_it_was_captured_and_is_named() -> None:
    x, rate = torch.ones(3), 0.5
    graph, out = captured(lambda: x * rate)
    rate = 0.25
    graph.replay()
    assert out.tolist() == [0.5, 0.5, 0.5]
    assert [each.kind for each in silent_errors(graph, numbers={"rate": rate})] == ["stale number"]
    assert not silent_errors(graph, numbers={"rate": 0.5})


@pytest.mark.parametrize(
    "read",
    [lambda x: x.sum().item(), lambda x: x if x.sum() > 0 else -x, lambda x: x[x > 0], lambda x: x.nonzero()],
    ids=["item", "branch", "mask", "nonzero"],
)
def test_a_read_by_the_host_raises(read: Callable[[torch.Tensor], object]) -> None:
    x = torch.ones(3)
    with warm_up():
        read(x)
    graph = Graph()
    with pytest.raises(HostReadError, match="read it after the replay"), graph:
        read(x)
    with pytest.raises(GraphStateError, match="no finished capture"):
        graph.replay()


def test_an_operator_that_was_not_warmed_up_raises() -> None:
    with pytest.raises(ColdStartError, match="warm_up"), Graph():
        torch.special.erfcx(torch.ones(2))


def test_a_generator_of_ones_own_raises_and_the_default_one_draws_anew() -> None:
    own, x = torch.Generator(), torch.ones(100)
    with warm_up():
        torch.rand(100, generator=own)
    with pytest.raises(RandomStateError, match="default generator"), Graph():
        torch.rand(100, generator=own)
    graph, out = captured(lambda: nn.functional.dropout(x, 0.5))
    graph.replay()
    first = out.clone()
    graph.replay()
    assert not torch.equal(out, first)


def test_state_that_is_created_during_the_capture_is_created_anew_by_each_replay() -> None:
    x, states = torch.ones(2), dict[str, torch.Tensor]()

    def step() -> torch.Tensor:
        if "sum" not in states:
            states["sum"] = torch.zeros(2)
        return states["sum"].add_(x)

    with warm_up():
        step()
    states.clear()
    graph = Graph()
    with graph:
        step()
    graph.replay()
    graph.replay()
    assert states["sum"].tolist() == [1, 1]
    graph, _ = captured(step)
    before = states["sum"].clone()
    graph.replay()
    assert torch.equal(states["sum"], before + 1)


def trained(batches: list[torch.Tensor], *, replayed: bool) -> list[float]:
    """Return the loss of each step after two that warm up."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    static, graph, losses = torch.zeros(5, 6), Graph(), []

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=False)
        loss = model(static).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    with warm_up():
        for batch in batches[:2]:
            static.copy_(batch)
            step()
    if replayed:
        with graph:
            loss = step()
    for batch in batches[2:]:
        static.copy_(batch)
        if replayed:
            graph.replay()
        else:
            loss = step()
        losses.append(float(loss.detach()))
    return losses


def test_twenty_replayed_train_steps_equal_eager_bit_by_bit() -> None:
    batches = [torch.randn(5, 6) for _ in range(22)]
    eager = trained(batches, replayed=False)
    assert len(set(eager)) == 20
    assert trained(batches, replayed=True) == eager


def test_a_capture_computes_nothing() -> None:
    x = torch.ones(3)
    graph, out = captured(lambda: x.add_(1) * 2)
    assert x.tolist() == [2, 2, 2]  # of the warm-up
    assert out.isnan().all()
    graph.replay()
    assert (x.tolist(), out.tolist()) == ([3, 3, 3], [6, 6, 6])


def test_the_order_of_calls_is_checked() -> None:
    graph = Graph()
    with pytest.raises(GraphStateError, match="capture_begin"):
        graph.capture_end()
    with pytest.raises(GraphStateError, match="no finished capture"):
        graph.replay()
    with graph, pytest.raises(GraphStateError, match="under way"):
        Graph().capture_begin()
    with pytest.raises(GraphStateError, match="reset"):
        graph.capture_begin()
    graph.reset()
    with graph:
        pass
    assert issubclass(GraphStateError, LaunchError)
    assert issubclass(LaunchError, RuntimeError)  # as those of PyTorch's class


def test_graphs_share_a_pool_by_its_token() -> None:
    first = Graph()
    assert Graph(pool=first.pool()).pool() == first.pool()
    assert Graph().pool() != first.pool()


def test_the_interface_is_that_of_pytorch() -> None:
    theirs = vars(torch.accelerator.Graph)
    names = [name for name in theirs if not name.startswith("_")]
    assert len(names) >= 8
    for name in (*names, "__init__", "__enter__"):
        ours, real = signature(vars(Graph)[name]), signature(theirs[name])
        assert [(each.name, each.kind, each.default) for each in ours.parameters.values()] == [
            (each.name, each.kind, each.default) for each in real.parameters.values()
        ], name
        assert (ours.return_annotation is None) == (real.return_annotation is None), name


def test_a_context_gives_no_graph_as_pytorchs_does_not() -> None:
    with Graph() as found:
        pass
    assert found is None


def test_a_dump_has_a_node_for_each_launch_and_an_arrow_where_memory_is_read(tmp_path: Path) -> None:
    x = torch.ones(3)
    graph, _ = captured(lambda: (x * 2).sin_() + x)
    with pytest.raises(GraphStateError, match="enable_debug_mode"):
        graph.debug_dump(str(tmp_path / "graph.dot"))
    graph.enable_debug_mode()
    graph.instantiate()
    graph.debug_dump(str(tmp_path / "graph.dot"))
    lines = (tmp_path / "graph.dot").read_text().splitlines()
    assert [line.strip() for line in lines[1:-1]] == [
        '0 [label="aten.mul.Tensor"];',
        '1 [label="aten.sin_.default"];',
        "0 -> 1;",
        '2 [label="aten.add.Tensor"];',
        "1 -> 2;",
    ]
    with pytest.raises(GraphStateError, match="then instantiate it"):
        Graph().instantiate()


def test_a_recording_has_lines_addresses_and_numbers() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x.view(-1) * 2
        return y + x.view(-1)

    x = torch.ones(2, 2)
    first, second = recording(program, x)
    assert (first.line, second.line) == (2, 3)
    assert first.reads == (x.data_ptr(),)
    assert first.numbers == (2,)
    assert set(first.writes) < set(second.reads)
    assert first.memory_bytes == 32
    assert second.as_dict()["operator"] == "aten.add.Tensor"
    (read,) = (each for each in recording(lambda x: x.max().item(), x) if each.host_read)
    assert "local_scalar" in read.operator


def test_memory_may_be_reserved_and_copied_and_ranges_opened_without_a_warm_up(monkeypatch):
    monkeypatch.setattr(replayed_graph, "_warm", set())
    kept, new = torch.zeros(3), torch.ones(3)
    graph = Graph()
    with graph:
        torch.empty(3)
        kept.copy_(new)
        with torch.profiler.record_function("range"):
            pass
    assert [launch.operator for launch in graph.launches] == ["aten.copy_.default"]
    with pytest.raises(ColdStartError, match=r"aten\.add"), Graph():
        kept.add_(new)


def test_a_capture_lasts_until_memory_is_as_it_was():
    seen, x = [], torch.ones(2)
    with warm_up():
        x.add_(1)

    class Noted(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(is_capturing())
            return func(*args, **(kwargs or {}))

    with Noted(), Graph():
        x.add_(1)
    assert (len(seen) > 1, all(seen), is_capturing(), x.tolist()) == (True, True, False, [2, 2])
