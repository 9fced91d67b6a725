"""One part of a graph, compiled for each kind of inputs: the cache of what was compiled, and whether a part pays."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import fx, nn

from course_lib.backends.aten import eager_cost, outside_of_tracing
from course_lib.backends.parts import Part
from course_lib.backends.support import target_name
from course_lib.backends.target import Executable, Target
from course_lib.errors import BackendError
from course_lib.fusion import Objection
from course_lib.graph import propagate_shapes

Key = tuple[object, ...]
Kept = TypeVar("Kept")


class CompileCache(Generic[Kept]):
    """A cache of compiled parts in memory, which counts hits and misses.

        >>> cache = CompileCache()
        >>> cache.get(("graph", "facts"), lambda: "program"), cache.get(("graph", "facts"), lambda: "another")
        ('program', 'program')
        >>> cache.hits, cache.misses
        (1, 1)

    Several backends can share one cache. A part is found again if it has the same graph and inputs of the same kind, so
    layers of one shape are compiled once.
    """

    def __init__(self) -> None:
        self._kept: dict[Key, Kept] = {}
        self.hits = 0
        self.misses = 0

    def get(self, key: Key, compile_it: Callable[[], Kept]) -> Kept:
        """Return the entry of `key`; compile and keep it if there is none yet."""
        if key in self._kept:
            self.hits += 1
            return self._kept[key]
        self.misses += 1
        self._kept[key] = compile_it()
        return self._kept[key]

    def clear(self) -> None:
        """Remove all entries, and reset the counts."""
        self._kept.clear()
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._kept)


@dataclass(frozen=True)
class InputFacts:
    """The properties of one input tensor that a compiled program relies on."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


def facts_of(inputs: Sequence[object]) -> Key:
    """Return the facts about inputs: shape, strides, type and device of a tensor, the value of a number."""
    return tuple(
        InputFacts(tuple(value.shape), tuple(value.stride()), value.dtype, value.device)
        if isinstance(value, torch.Tensor)
        else (type(value), value)
        for value in inputs
    )


def fingerprint(graph: fx.Graph) -> Key:
    """Return a key that is equal for graphs of the same calls, whatever their nodes are called."""
    number = {node: position for position, node in enumerate(graph.nodes)}

    def plain(value: object) -> object:
        if isinstance(value, fx.Node):
            return ("node", number[value])
        if isinstance(value, (tuple, list)):
            return (type(value).__name__, *map(plain, value))
        if isinstance(value, dict):
            return ("dict", *((key, plain(part)) for key, part in value.items()))
        return (type(value).__name__, str(value))  # 1, 1.0 and True are equal in Python, but different arguments

    return tuple(
        (node.op, str(node.target) if node.op != "placeholder" else "", plain(node.args), plain(node.kwargs))
        for node in graph.nodes
    )


@dataclass(frozen=True)
class Spent:
    """The cost of one run."""

    launches: int
    bytes_moved: int


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices that decide which parts to keep. The defaults are round numbers, not those of any device.

        >>> Prices(launch_us=5, bandwidth_gb_s=1000).time_us(launches=2, bytes_moved=1_000_000)
        11.0

    Raises `BackendError` for a price that is negative or no finite number, and for a bandwidth of 0.
    """

    launch_us: float = 5.0
    bandwidth_gb_s: float = 1000.0
    handover_us: float = 2.0  # for leaving eager PyTorch and coming back, once per part

    def __post_init__(self) -> None:
        for name in ("launch_us", "bandwidth_gb_s", "handover_us"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
                raise BackendError(f"Prices got {name}={value!r}; expected a number that is not negative.")
        if self.bandwidth_gb_s == 0:
            raise BackendError("Prices got bandwidth_gb_s=0, with which nothing would ever arrive.")

    def time_us(self, *, launches: int, bytes_moved: int) -> float:
        """Return the time that launches and memory traffic take together."""
        return launches * self.launch_us + bytes_moved / (self.bandwidth_gb_s * 1e3)

    def objection(self, part: fx.GraphModule, executable: Executable) -> Objection | None:
        """Return why a part should be left to eager PyTorch, or None if the target is faster for it."""
        eager = eager_cost(part, [node.meta["val"] for node in part.graph.find_nodes(op="placeholder")])
        before = self.time_us(launches=eager.launches, bytes_moved=eager.bytes_moved)
        after = self.time_us(launches=executable.launches, bytes_moved=executable.bytes_moved) + self.handover_us
        if after < before:
            return None
        return Objection("too small", f"eager takes {before:.1f} µs for the part and the target {after:.1f} µs")

    def loss(self, before: Spent, after: Spent) -> Objection | None:
        """Return why a whole graph should be left to eager PyTorch, or None if lowering it costs no time."""
        old, new = (self.time_us(launches=spent.launches, bytes_moved=spent.bytes_moved) for spent in (before, after))
        if new <= old:
            return None
        return Objection("no gain", f"eager takes {old:.1f} µs for the whole graph, and with the target {new:.1f} µs")


Compiled = Executable | Objection


class CompiledPart(nn.Module):
    """One part, compiled for each kind of inputs it is called with; it runs eagerly where that is not possible."""

    def __init__(self, part: fx.GraphModule, target: Target, prices: Prices, cache: CompileCache[Compiled]) -> None:
        super().__init__()
        self.eager = part
        self._target, self._prices, self._cache = target, prices, cache
        self._graph: Key = (target.identity, prices, fingerprint(part.graph))

    def compiled_for(self, inputs: Sequence[object]) -> Compiled:
        """Return the executable for inputs like these, or why there is none; compile it if it is not in the cache."""
        return self._cache.get((self._graph, facts_of(inputs)), lambda: self._compile(inputs))

    def forward(self, *inputs: object) -> tuple[torch.Tensor, ...]:
        """Compute the part."""
        found = self.compiled_for(inputs)
        return tuple(self.eager(*inputs) if isinstance(found, Objection) else found(*inputs))

    def _compile(self, inputs: Sequence[object]) -> Compiled:
        graph = fx.Graph()  # a copy, because its nodes get the shapes of these inputs
        graph.output(graph.graph_copy(self.eager.graph, {}))
        with outside_of_tracing():
            part = propagate_shapes(fx.GraphModule(self.eager, graph, class_name="Part"), inputs)
            compiled = self._target.compile(part)
            if isinstance(compiled, Objection):
                return compiled
            return self._prices.objection(part, compiled) or compiled


@dataclass(frozen=True, repr=False)
class PartOutcome:
    """Whether and how a part was compiled."""

    name: str
    operators: tuple[str, ...]
    compiled: Compiled | None  # None where sizes are symbols, and the part is compiled when it is first called
    found_in_cache: bool = False

    @property
    def kept(self) -> bool:
        """Tell whether the target computes the part."""
        return not isinstance(self.compiled, Objection)

    def __repr__(self) -> str:
        what = "compiled when it is called" if self.compiled is None else str(self.compiled)
        return f"{self.name}, {len(self.operators)} operators: {what}"


def outcome_of(part: Part, module: CompiledPart, cache: CompileCache[Compiled] | None) -> PartOutcome:
    """Compile a part for the inputs that its graph has, unless there is no cache because sizes are symbols."""
    operators = tuple(target_name(node) for node in part.nodes)
    if cache is None:
        return PartOutcome(part.name, operators, None)
    hits = cache.hits
    compiled = module.compiled_for([node.meta["val"] for node in part.inputs])
    return PartOutcome(part.name, operators, compiled, found_in_cache=cache.hits > hits)
