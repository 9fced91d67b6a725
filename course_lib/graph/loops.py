"""Read the result of Inductor's scheduler: the loops of a program, the kernels they are fused into, and refusals.

This module alone uses these private parts of PyTorch, as they are in torch 2.13: the option that gives the loops after
fusion, the attributes of a loop, and the log of refused fusions.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from course_lib.graph.generated_code import CompiledCost, lowered
from course_lib.show import Table

Reads = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Loop:
    """Describe one loop, or one call of a library kernel."""

    kernel: int  # number of the kernel, from 0 over all graphs; loops of one kernel are fused
    graph: int  # number of the graph, from 0; a graph break begins a new graph
    name: str  # Inductor's name; in a later graph with a prefix, as in "g1.op0"
    library: bool  # whether it calls a library kernel, such as a matrix product
    over: tuple[int, ...]  # sizes of the loop; it has one result for each index
    reducing: tuple[int, ...]  # sizes of the inner loop of a reduction
    reads: Reads  # each buffer or argument with the index at which it is read; "all" if there is no single index
    writes: str  # the buffer of its results
    into: str  # the buffer or argument whose memory it overwrites; empty if it has its own buffer

    def data(self) -> dict[str, Any]:
        """Return the loop as plain data."""
        reads = [list(read) for read in self.reads]
        return {**asdict(self), "over": list(self.over), "reducing": list(self.reducing), "reads": reads}


@dataclass(frozen=True)
class Scheduled:
    """Hold the loops of a program, in the order in which they run."""

    loops: tuple[Loop, ...]
    refusals: tuple[str, ...]  # the messages of the scheduler, each once
    cost: CompiledCost

    @property
    def kernels(self) -> int:
        """Return the number of kernels that run; loops that are fused count once."""
        return len({loop.kernel for loop in self.loops})

    def data(self) -> list[dict[str, Any]]:
        """Return the loops as plain data, one dict for each."""
        return [loop.data() for loop in self.loops]

    def __str__(self) -> str:
        head = ("kernel", "loop", "over", "reducing", "reads", "writes")
        return str(Table(head, tuple(map(_cells, self.loops)), rule="none"))


def _cells(loop: Loop) -> tuple[str, ...]:
    return (
        str(loop.kernel),
        loop.name,
        "library" if loop.library else " x ".join(map(str, loop.over)) or "1",
        " x ".join(map(str, loop.reducing)),
        ", ".join(f"{name}[{place}]" for name, place in loop.reads),
        loop.writes + (f" into {loop.into}" if loop.into else ""),
    )


def scheduled(
    fn: Callable[..., object], inputs: Sequence[object], *, config: Mapping[str, Any] | None = None
) -> Scheduled:
    """Return the loops that Inductor generates for `fn(*inputs)` and how it fuses them, without compiling them.

    >>> def shifted(x):
    ...     y = x.exp()
    ...     return y, y.T.contiguous() + 1
    >>> print(scheduled(shifted, (torch.zeros(64, 32),)))
    kernel  loop  over     reducing  reads             writes
    0       op0   2048               arg0_1[c0]        buf0
    1       op1   32 x 64            buf0[c0 + 32*c1]  buf1

    A loop of a later graph reads a result of an earlier graph by its name in the earlier graph. The backward
    pass is not scheduled.

    `config` holds options of `torch._inductor.config` by their names, such as `{"max_fusion_size": 1}`. `fn` runs once
    on PyTorch's own kernels, so its writes to its inputs take effect. Dynamo is reset. Raises `GraphError` if Inductor
    cannot lower the program, or does not have such an option.
    """
    program = _Program()

    def keep(nodes: list[Any]) -> list[Any]:  # a plain function, since Inductor makes deep copies of its options
        return program.keep(nodes)

    with _refusals(program.refusals):
        cost = lowered(fn, inputs, config={**(config or {}), "_post_fusion_custom_pass": keep})
    return Scheduled(tuple(program.loops()), tuple(dict.fromkeys(program.refusals)), cost)


@dataclass
class _Graph:
    """Hold the nodes of one graph after fusion, and the buffers of earlier graphs that are its arguments."""

    nodes: Sequence[Any]
    arguments: Sequence[str]
    results: Sequence[str]
    came_from: dict[str, str] = field(default_factory=dict)


@dataclass
class _Program:
    """Hold all graphs of a program, in order."""

    graphs: list[_Graph] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    returned: list[tuple[torch.Tensor, str]] = field(default_factory=list)  # kept alive, so that no address is reused

    def keep(self, nodes: list[Any]) -> list[Any]:
        """Record the nodes of one graph, and its arguments and results when it runs."""
        from torch._inductor.virtualized import V

        number = len(self.graphs)
        graph = _Graph(tuple(nodes), tuple(V.graph.graph_input_names), tuple(V.graph.get_output_names()))
        self.graphs.append(graph)
        if (module := getattr(V.graph, "orig_gm", None)) is not None:
            module.register_forward_hook(lambda _, given, results: self._ran(number, given, results))
        return nodes

    def _ran(self, number: int, given: Sequence[object], results: object) -> None:
        graph = self.graphs[number]
        for name, value in zip(graph.arguments, given, strict=False):
            for tensor, at in self.returned:
                if type(value) is torch.Tensor and value.data_ptr() == tensor.data_ptr():
                    graph.came_from[name] = at
        outputs = results if isinstance(results, tuple | list) else (results,)
        for name, value in zip(graph.results, outputs, strict=False):
            if type(value) is torch.Tensor:
                self.returned.append((value, _numbered(number, name)))

    def loops(self) -> Iterator[Loop]:
        """Yield every loop of every graph."""
        kernel = -1
        for number, graph in enumerate(self.graphs):
            lies_in: dict[str, list[str]] = {name: [at] for name, at in graph.came_from.items()}
            for node in graph.nodes:
                parts = [part for part in node.get_nodes() if not does_nothing(part)]
                kernel += bool(parts)
                for part in node.get_nodes():
                    if part in parts:
                        yield _loop(part, kernel, number, lies_in)
                    else:
                        whole = [n for dep in part.read_writes.reads for n in _names(dep.name, number, lies_in)]
                        lies_in.update((output.get_name(), whole) for output in part.get_outputs())


def does_nothing(node: Any) -> bool:
    """Tell whether a node runs nothing: it is part of another buffer, or one of several results of a library kernel."""
    from torch._inductor import ir
    from torch._inductor.scheduler import NopKernelSchedulerNode

    return isinstance(node, NopKernelSchedulerNode) or isinstance(node.node, ir.MultiOutput)


def _loop(node: Any, kernel: int, number: int, lies_in: dict[str, list[str]]) -> Loop:
    from torch._inductor.scheduler import SchedulerNode

    library = not isinstance(node, SchedulerNode)
    over, reducing = ((), ()) if library else node._sizes
    reads = dict.fromkeys(
        (name, _place(dep))
        for dep in sorted(node.read_writes.reads, key=str)
        if not hasattr(dep, "mutating_buf")  # such a dependency only orders the nodes
        for name in _names(dep.name, number, lies_in)
    )
    output = node.get_outputs()[0]
    into = next(iter(output.get_mutations()), "")
    return Loop(
        kernel,
        number,
        _numbered(number, node.get_name()),
        library,
        tuple(map(int, over)),
        tuple(map(int, reducing)),
        tuple(reads),
        _numbered(number, output.get_name()),
        into and _names(into, number, lies_in)[0],
    )


def _names(name: str, number: int, lies_in: dict[str, list[str]]) -> list[str]:
    """Return the buffers that hold what Inductor calls `name` in graph `number`."""
    return lies_in.get(name, [_numbered(number, name)])


def _place(dep: Any) -> str:
    """Return the index at which a loop reads a buffer: an expression in its counters c0, c1, ..."""
    from torch._inductor.dependencies import MemoryDep

    return str(dep.index) if isinstance(dep, MemoryDep) else "all"


def _numbered(graph: int, name: str) -> str:
    """Return a name with the number of its graph, since names repeat in each graph."""
    return f"g{graph}.{name}" if graph else name


@contextlib.contextmanager
def _refusals(kept: list[str]) -> Iterator[None]:
    """Collect the scheduler's messages about pairs that it does not fuse, without printing them."""
    from torch._inductor.scheduler import fusion_log as log

    class Keeping(logging.Filter):
        """Collect messages and drop the records."""

        def filter(self, record: logging.LogRecord) -> bool:
            """Collect a refusal and drop the record."""
            text = record.getMessage()
            if text.startswith("cannot fuse"):
                kept.append(text)
            return False

    level, keeping = log.level, Keeping()
    log.setLevel(logging.DEBUG)
    log.addFilter(keeping)
    try:
        yield
    finally:
        log.removeFilter(keeping)
        log.setLevel(level)
