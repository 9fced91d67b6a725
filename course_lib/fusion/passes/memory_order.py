"""Reorder independent nodes, so that fewer bytes are alive at once.

A graph says what each node reads. Any order that runs operands first computes the same, and the order decides how long
a value is kept: two large values that are each reduced need not be alive together. Values are freed after their last
reader, as the code of torch.fx does, so the peak of an order can be counted before it runs.

Some order is no choice. Reads and writes of shared memory stay as they are, among them those of views; random numbers
are drawn in the same order; nothing moves past a call that cannot be observed, that switches how later operators run,
or that runs for its effect only, such as an assertion.

The best order is a hard problem, so this is a search: it keeps the few partial orders with the lowest peaks and
extends each by one node, of the first that may come next. What it finds is counted as a whole on fake tensors before it
is taken, without gradients and with them. The peak must fall in the first count and must not rise in the second, where
saved tensors stay alive in any order. Under `torch.no_grad()`, only the first count is made.
"""

import heapq
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.fusion.effects import is_opaque, memory_of, mutates, stand_ins_of
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.guards import cost_on_fakes
from course_lib.fusion.result import Rejected, refusal
from course_lib.fusion.rules import Objection
from course_lib.fusion.storage import run_node
from course_lib.fusion.swaps import objection_to_swapping, swappable
from course_lib.graph import cost
from course_lib.graph.memory import storage_of
from course_lib.graph.recorder import UNKNOWN, tensors_of
from course_lib.graph.shapes import run_on_fakes
from course_lib.isolation import preserving

WIDTH, STATES = 16, 20_000  # partial orders that are kept: 16 in graphs of up to 1,250 calls, fewer in larger ones
NEXT = 32  # calls that a partial order is extended by: of those that may come next, the first in the graph
FAILED = sys.maxsize  # more than any count
Order = Sequence[int]  # the numbers of calls, which count them in the order of the graph


class MemoryOrder(GraphPass):
    """Run nodes in an order in which fewer bytes are alive at once; count 1 if the order has changed.

    It runs only if requested by name.
    """

    name = "memory_order"
    by_default = False
    reads_operators = False  # the parts of an operator need less memory at once than the operator

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Reorder as long as the counted peak falls; report what keeps the peak from falling further."""
        unknown = next((node for node in _calls(gm.graph) if not _is_known(node)), None)
        if unknown is not None:
            objection = Objection("shape unknown", f"the shape of {unknown} is not known, nor are its bytes")
            return 0, [refusal(self.name, (unknown.name,), objection, unknown)]
        changed = 0
        while True:
            program = _Program(gm.graph)
            peak, order = program.search(program.required)
            if peak < program.peak_of(range(len(program.calls))):
                worse = _put_in_order(gm, program.calls, order)
                if worse is None:
                    changed = 1
                    continue
                moved = next(place for place, number in enumerate(order) if place != number)
                return changed, [self._refused(program.calls[moved], program.calls[order[moved]], worse)]
            return changed, self._obstacle(program, peak)

    def _obstacle(self, program: "_Program", peak: int) -> list[Rejected]:
        """Report the first two calls that a better order would swap, if their effects forbid it."""
        if program.required == program.read:
            return []
        lower, order = program.search(program.read)
        if lower >= peak:
            return []
        place = {number: position for position, number in enumerate(order)}
        for first, last in ((a, b) for b in range(len(order)) for a in range(b) if place[b] < place[a]):
            found = program.order_of(first, last)
            if found is not None:
                saved = f"; swapped, {lower:,} bytes would be alive, not {peak:,}"
                found = Objection(found.rule, found.reason + saved)
                return [self._refused(program.calls[first], program.calls[last], found)]
        return []

    def _refused(self, first: fx.Node, last: fx.Node, objection: Objection) -> Rejected:
        return refusal(self.name, (first.name, last.name), objection, last)


@dataclass(frozen=True)
class _Partial:
    """The first calls of an order."""

    peak: int  # bytes
    live: int  # bytes
    done: int  # the calls as bits
    ready: tuple[int, ...]  # the calls that may come next, in the order of the graph
    moved: int = 0  # pairs of calls in another order than in the graph
    path: tuple[Any, ...] = ()  # the calls, the last one first: (last, (the one before, ...))

    def order(self) -> list[int]:
        found, path = [], self.path
        while path:
            last, path = path
            found.append(last)
        return found[::-1]


class _Program:
    """The calls of a graph by number, with the bytes that each makes and what must run before it."""

    def __init__(self, graph: fx.Graph) -> None:
        self.calls = _calls(graph)
        self.effects = [swappable(node) for node in self.calls]
        self.sizes: dict[int, int] = {}  # bytes of each storage that the graph makes
        self.holders: dict[int, int] = {}  # the calls, as bits, that read it or return it; never all done if returned
        self.made: list[list[int]] = []
        self.held: list[list[int]] = []
        self._find_storages(graph)
        self.beside = [_beside(node) for node in self.calls]
        number = {node: position for position, node in enumerate(self.calls)}
        self.read = [_bits(number[one] for one in node.all_input_nodes if one in number) for node in self.calls]
        self.required = [read | self._kept(last) for last, read in enumerate(self.read)]

    def _find_storages(self, graph: fx.Graph) -> None:
        existing = (node for node in graph.nodes if node.op in ("placeholder", "get_attr"))
        stand_ins = stand_ins_of(graph)
        held = stand_ins.storages if stand_ins is not None else set()
        given = held.union(*map(memory_of, existing))
        for number, node in enumerate(self.calls):
            sizes = {storage_of(one): one.untyped_storage().nbytes() for one in tensors_of(node.meta["val"])}
            self.made.append([one for one in sizes if one not in given and one not in self.sizes])
            self.sizes.update({one: sizes[one] for one in self.made[-1]})
            near = sizes.keys() | set().union(*map(memory_of, node.all_input_nodes))
            self.held.append([one for one in near if one in self.sizes])
            for one in self.held[-1]:
                self.holders[one] = self.holders.get(one, 0) | 1 << number
        for node in graph.output_node().all_input_nodes:
            for one in memory_of(node) & self.sizes.keys():
                self.holders[one] |= 1 << len(self.calls)

    def _kept(self, last: int) -> int:
        """Return the calls before call `last`, as bits, that its effects or theirs keep there."""
        return _bits(first for first in range(last) if self.order_of(first, last) is not None)

    def order_of(self, first: int, last: int) -> Objection | None:
        """Return why one call must stay before another, apart from what it reads."""
        return objection_to_swapping(self.effects[first], self.effects[last])

    def peak_of(self, order: Order) -> int:
        """Return the bytes that are alive at once in an order."""
        state = _Partial(0, 0, 0, ())
        for number in order:
            state = self._then(state, number)
        return state.peak

    def search(self, before: Sequence[int]) -> tuple[int, list[int]]:
        """Return the lowest peak that was found, in bytes, with its order; `before` says what must precede a call."""
        after: list[list[int]] = [[] for _ in before]
        for last, bits in enumerate(before):
            for first in _numbers(bits):
                after[first].append(last)
        width = max(1, min(WIDTH, STATES // max(1, len(before))))
        states = [_Partial(0, 0, 0, tuple(number for number, bits in enumerate(before) if not bits))]
        for _ in before:
            found: dict[int, _Partial] = {}
            for state in states:
                for number in self._choices(state):
                    new = self._then(state, number)
                    known = found.get(new.done)
                    if known is None or (new.peak, new.moved) < (known.peak, known.moved):
                        found[new.done] = new
            kept = heapq.nsmallest(width, found.values(), key=lambda one: (one.peak, one.live, one.moved))
            states = [replace(one, ready=_ready(one, before, after)) for one in kept]
        return states[0].peak, states[0].order()

    def _choices(self, state: _Partial) -> Sequence[int]:
        """Return a call that makes nothing, which is never worse now than later; without one, all that are ready."""
        free = next((one for one in state.ready if not self.made[one] and not self.beside[one]), None)
        return state.ready[:NEXT] if free is None else (free,)

    def _then(self, state: _Partial, number: int) -> _Partial:
        """Return the state after one more call; what is ready is still as before it."""
        live = state.live + sum(self.sizes[one] for one in self.made[number])
        peak, done = max(state.peak, live + self.beside[number]), state.done | 1 << number
        live -= sum(self.sizes[one] for one in self.held[number] if not self.holders[one] & ~done)
        moved = state.moved + (~state.done & (1 << number) - 1).bit_count()
        return _Partial(peak, live, done, state.ready, moved, (number, state.path))


def _ready(state: _Partial, before: Sequence[int], after: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the calls that may come next: without the last one, and with those that waited for it."""
    last, _ = state.path
    freed = [one for one in after[last] if not before[one] & ~state.done]
    return tuple(sorted((*(one for one in state.ready if one != last), *freed)))


def _calls(graph: fx.Graph) -> list[fx.Node]:
    return [node for node in graph.nodes if node.op.startswith("call_")]


def _is_known(node: fx.Node) -> bool:
    """Return whether the bytes of a node are known as plain numbers."""
    return UNKNOWN not in memory_of(node) and all(
        isinstance(one.untyped_storage().nbytes(), int) for one in tensors_of(node.meta.get("val"))
    )


def _beside(node: fx.Node) -> int:
    """Return the bytes that a call needs beside its result while it runs, such as those of a module's own steps."""
    mode = next((one.fake_mode for one in tensors_of(node.meta["val"]) if isinstance(one, FakeTensor)), None)
    if mode is None or mutates(node) or is_opaque(node):
        return 0
    try:
        with preserving(None):
            counted = cost_on_fakes(lambda: run_node(node, {}), mode)
    except Exception:  # whatever an operator says; what is taken is counted as a whole
        return 0
    made = {storage_of(one): one.untyped_storage().nbytes() for one in tensors_of(node.meta["val"])}
    given = set().union(*map(memory_of, node.all_input_nodes))
    return max(0, counted.peak_bytes - sum(size for storage, size in made.items() if storage not in given))


def _put_in_order(gm: fx.GraphModule, calls: Sequence[fx.Node], order: Order) -> Objection | None:
    """Put the calls of a graph in order; if the counted peak then does not fall, put all back and say why."""
    old = [node for node in gm.graph.nodes if node.op not in ("placeholder", "output")]
    gm.recompile()  # an earlier pass may have changed the graph
    before = _peaks(gm)
    _move(gm, list(_with_attributes([calls[number] for number in order], old)))
    after = _peaks(gm)
    if after[0] < before[0] and after[1] <= before[1]:
        return None
    _move(gm, old)
    how = "" if after[0] >= before[0] else ", with gradients recorded"
    new, was = (after[0], before[0]) if not how else (after[1], before[1])
    return Objection("peak", f"in another order, {new:,} bytes would be alive at once instead of {was:,}{how}")


def _with_attributes(calls: Sequence[fx.Node], old: Sequence[fx.Node]) -> Iterator[fx.Node]:
    """Yield calls, each behind the attributes that it is the first to read, and all attributes in their old order.

    An attribute that was read before an opaque call, which may give it another value, is read before it again.
    """
    waiting = [node for node in old if node.op == "get_attr"]
    position = {node: number for number, node in enumerate(old)}
    for call in calls:
        opaque = is_opaque(call)
        for node in list(waiting):
            if node in call.all_input_nodes or (opaque and position[node] < position[call]):
                waiting.remove(node)
                yield node
        yield call
    yield from waiting


def _move(gm: fx.GraphModule, order: Sequence[fx.Node]) -> None:
    output = gm.graph.output_node()
    for node in order:
        output.prepend(node)
    gm.recompile()


def _peaks(gm: fx.GraphModule) -> tuple[int, int]:
    """Return the bytes that are alive at once in one run of a graph, without gradients and with them.

    The second is 0 if the caller records none, and `FAILED` if the graph does not run with them.
    """
    inputs = [node.meta["val"] for node in gm.graph.find_nodes(op="placeholder")]

    def measured(_: object, module: nn.Module, given: Sequence[object], *, gradients: bool) -> int:
        with torch.set_grad_enabled(gradients):
            if not gradients:
                module.requires_grad_(False)
            return cost(lambda *values: type(gm).forward(module, *values), given).peak_bytes

    def with_gradients(_: object, module: nn.Module, given: Sequence[object]) -> int:
        try:
            return measured(_, module, given, gradients=True)
        except Exception:  # such as a write to a parameter
            return FAILED

    recorded = torch.is_grad_enabled()
    with preserving(None):
        plain = run_on_fakes(gm, inputs, lambda *given: measured(*given, gradients=False))
        return plain, run_on_fakes(gm, inputs, with_gradients) if recorded else 0


def _bits(numbers: Iterator[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _numbers(bits: int) -> Iterator[int]:
    while bits:
        last = bits & -bits
        yield last.bit_length() - 1
        bits ^= last
