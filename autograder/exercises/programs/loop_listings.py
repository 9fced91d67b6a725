"""Random listings of loops after Inductor's scheduling, in which the unfused edges and their reasons are known.

A listing has the form of `course_lib.graph.scheduled(...).data()`. The reason of each edge is drawn first, and the
edge is made to fit it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from autograder.host.draw import Draw

Loop = Mapping[str, Any]
Read = tuple[str, str]  # buffer and place
Edge = tuple[str, str, str]  # producer, consumer, reason

BREAK, EXTERN, MUTATION, VIEW, SIZES = "graph break", "extern kernel", "mutation", "view", "size mismatch"
REASONS = (BREAK, EXTERN, MUTATION, VIEW, SIZES)  # if several apply to an edge, the first one counts


@dataclass(frozen=True)
class Listing:
    """Loops, and the edges between loops of different kernels."""

    name: str  # completes "For ..."
    loops: list[Loop]
    edges: frozenset[Edge]

    @property
    def fused(self) -> frozenset[tuple[str, str]]:
        """Return the edges inside kernels."""
        wrote = {loop["writes"]: loop for loop in self.loops}
        found = ((wrote[name], loop) for loop in self.loops for name, _ in loop["reads"] if name in wrote)
        return frozenset((a["name"], b["name"]) for a, b in found if a["kernel"] == b["kernel"])

    def told(self, name: str) -> str:
        """Return a description of one loop, for a message."""
        loop = next(loop for loop in self.loops if loop["name"] == name)
        sizes = "a library's kernel" if loop["library"] else "over " + (" x ".join(map(str, loop["over"])) or "1")
        inner = f" reducing {' x '.join(map(str, loop['reducing']))}" if loop["reducing"] else ""
        reads = ", ".join(f"{buffer}[{place}]" for buffer, place in loop["reads"])
        into = f" into {loop['into']}" if loop["into"] else ""
        return f"{name} ({sizes}{inner}, reads {reads}, writes {loop['writes']}{into})"


@dataclass
class _Writing:
    """A listing under construction."""

    draw: Draw
    kernels: list[list[Loop]] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    graph: int = 0
    shapes: dict[str, tuple[int, int]] = field(default_factory=dict)  # rows and columns of each loop's range
    named: dict[tuple[int, str], int] = field(default_factory=dict)

    def fresh(self, kind: str) -> str:
        """Return a new name: "op", "buf" or "arg" with a number that starts at 0 in each graph."""
        number = self.named[self.graph, kind] = self.named.get((self.graph, kind), -1) + 1
        return f"{f'g{self.graph}.' if self.graph else ''}{kind}{number}" + ("_1" if kind == "arg" else "")

    def add(
        self,
        over: Sequence[int],
        reads: Sequence[Read],
        *,
        reducing: Sequence[int] = (),
        library: bool = False,
        into: bool = False,
        beside: Loop | None = None,
    ) -> Loop:
        """Add one loop, in a new kernel or in the kernel of the loop `beside`; it may also read an argument."""
        more = [(self.fresh("arg"), "all" if library else "c0")] if self.draw.chance(0.4) or not reads else []
        written = [(self.fresh("arg"), "all")] if into else []
        loop = {
            "kernel": -1,
            "graph": self.graph,
            "name": self.fresh("op"),
            "library": library,
            "over": list(over),
            "reducing": list(reducing),
            "reads": [list(read) for read in (*more, *reads, *written)],
            "writes": self.fresh("buf"),
            "into": written[0][0] if into else "",
        }
        if beside:
            next(kernel for kernel in self.kernels if beside in kernel).append(loop)
        else:
            self.kernels.append([loop])
        return loop

    def loops(self) -> list[Loop]:
        """Return all loops, kernel by kernel."""
        return [{**loop, "kernel": number} for number, kernel in enumerate(self.kernels) for loop in kernel]

    def sizes(self) -> tuple[int, int]:
        """Return random numbers of rows and columns; the number of columns is even."""
        return self.draw.integer(3, 40), 2 * self.draw.integer(2, 30)

    def pick(self, suits: Callable[[Loop], bool], make: Callable[[], Loop]) -> Loop:
        """Return a loop of the current graph that satisfies `suits`, or a new one."""
        found = [loop for kernel in self.kernels for loop in kernel if loop["graph"] == self.graph and suits(loop)]
        return self.draw.choice(found) if found and self.draw.chance(0.6) else make()

    def pointwise(self, *, into: bool = False) -> Loop:
        """Add a loop over rows and columns."""
        rows, columns = self.sizes()
        loop = self.add([rows * columns], (), into=into)
        self.shapes[loop["name"]] = (rows, columns)
        return loop

    def reduction(self) -> Loop:
        """Add a loop with one result for each row, or one result in total."""
        rows, columns = self.sizes()
        whole = self.draw.chance(0.4)
        loop = self.add([] if whole else [rows], (), reducing=[rows * columns if whole else columns])
        self.shapes[loop["name"]] = (rows, columns)
        return loop

    def library(self) -> Loop:
        """Add a call of a library kernel."""
        return self.add((), (), library=True, into=self.draw.chance(0.3))


def _plain(loop: Loop) -> bool:
    """Return whether a loop is pointwise, has one flat range, and writes its own buffer."""
    return not (loop["library"] or loop["reducing"] or loop["into"]) and len(loop["over"]) == 1


def _fused(writing: _Writing) -> None:
    """Add an edge inside a kernel: pointwise or with a row reduction, sometimes written into an argument's memory."""
    shapes = writing.shapes
    producer = writing.pick(lambda p: _plain(p) and p["name"] in shapes, writing.pointwise)
    rows, columns = shapes[producer["name"]]
    read = [(producer["writes"], "c0")]
    if writing.draw.chance(0.5):
        writing.add(producer["over"], read, beside=producer, into=writing.draw.chance(0.4))
        return
    row = writing.add([rows], read, reducing=[columns], beside=producer)
    writing.add([rows, columns], [(row["writes"], "c0")], beside=producer)


def _view(writing: _Writing) -> Edge:
    """Add an edge between loops over the same number of points in different orders."""
    shapes = writing.shapes
    producer = writing.pick(lambda p: _plain(p) and p["name"] in shapes, writing.pointwise)
    (rows, columns), buffer = shapes[producer["name"]], producer["writes"]
    turned, flipped = f"c0 + {columns}*c1", f"{columns}*c0 - c1 + {columns - 1}"
    kind = writing.draw.choice(("turned", "flipped", "both", "columns"))
    if kind == "turned":
        consumer = writing.add([columns, rows], [(buffer, turned)])
    elif kind == "columns":
        consumer = writing.add([columns], [(buffer, turned)], reducing=[rows])
    else:
        reads = [(buffer, flipped), *([(buffer, f"{columns}*c0 + c1")] if kind == "both" else [])]
        consumer = writing.add([rows, columns], reads)
    return producer["name"], consumer["name"], VIEW


def _sizes(writing: _Writing) -> Edge:
    """Add an edge between loops with different numbers of points, or from the result of a reduction."""
    shapes, draw = writing.shapes, writing.draw
    if draw.chance(0.5):
        producer = writing.pick(lambda p: bool(p["reducing"]) and p["name"] in shapes, writing.reduction)
        rows, columns = shapes[producer["name"]]
        buffer = producer["writes"]
        if not producer["over"]:
            consumer = writing.add([rows * columns], [(buffer, "0")])
        elif draw.chance(0.5):
            consumer = writing.add([columns, rows], [(buffer, "c1")])
        else:
            consumer = writing.add([], [(buffer, "c0")], reducing=[rows])
    else:
        producer = writing.pick(lambda p: _plain(p) and p["name"] in shapes, writing.pointwise)
        (rows, columns), buffer = shapes[producer["name"]], producer["writes"]
        half, less, more = [rows * columns // 2], [rows, columns - 1], [rows, columns + 1]
        over, place = draw.choice(((half, "2*c0"), (less, f"{columns}*c0 + c1 + 1"), (more, f"{columns}*c0 + c1")))
        consumer = writing.add(over, [(buffer, place)])
    return producer["name"], consumer["name"], SIZES


def _mutation(writing: _Writing) -> Edge:
    """Add an edge in which one loop writes into existing memory."""
    if writing.draw.chance(0.5):
        producer = writing.pick(lambda p: bool(p["into"]) and not p["library"], lambda: writing.pointwise(into=True))
        rows, columns = writing.sizes()
        over = writing.draw.choice((producer["over"], [rows * columns], [rows, columns]))
        consumer = writing.add(over, [(producer["writes"], "c0")])
    else:
        producer = writing.pick(lambda p: not p["library"] and not p["into"] and bool(p["over"]), writing.pointwise)
        consumer = writing.add([prod(producer["over"])], [(producer["writes"], "c0")], into=True)
    return producer["name"], consumer["name"], MUTATION


def _extern(writing: _Writing) -> Edge:
    """Add an edge in which one loop is a library kernel."""
    if writing.draw.chance(0.5):
        producer = writing.pick(lambda p: bool(p["library"]), writing.library)
        consumer = writing.add([prod(writing.sizes())], [(producer["writes"], "c0")], into=writing.draw.chance(0.3))
    else:
        producer = writing.pick(lambda p: True, writing.pointwise)
        consumer = writing.add((), [(producer["writes"], "all")], library=True, into=writing.draw.chance(0.3))
    return producer["name"], consumer["name"], EXTERN


def _break(writing: _Writing) -> Edge:
    """Add an edge whose consumer is in a later graph."""
    producer = writing.pick(
        lambda p: True, writing.draw.choice((writing.pointwise, writing.reduction, writing.library))
    )
    writing.graph += 1
    library = writing.draw.chance(0.3)
    over = [] if library else producer["over"] or [1]
    read = (producer["writes"], "all" if library else "c0")
    consumer = writing.add(over, [read], library=library, into=writing.draw.chance(0.3))
    return producer["name"], consumer["name"], BREAK


_MAKERS: dict[str, Callable[[_Writing], Edge]] = {
    BREAK: _break,
    EXTERN: _extern,
    MUTATION: _mutation,
    VIEW: _view,
    SIZES: _sizes,
}


def drawn(draw: Draw, reasons: Sequence[str]) -> Listing:
    """Return a listing with one unfused edge for each of `reasons`, and some fused edges."""
    writing = _Writing(draw)
    for reason in reasons:
        if draw.chance(0.6):
            _fused(writing)
        writing.edges.append(_MAKERS[reason](writing))
    if draw.chance(0.5):
        writing.pointwise()  # a loop without an edge
    loops = writing.loops()
    return Listing(f"a listing of {len(loops)} loops", loops, frozenset(writing.edges))
