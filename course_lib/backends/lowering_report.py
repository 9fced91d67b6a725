"""A report on lowered graphs, as text and HTML: parts, refusals, launches, bytes, and the cache."""

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from course_lib.backends.compiled_part import PartOutcome, Spent
from course_lib.backends.lowered_graph import Lowered
from course_lib.backends.target import Executable
from course_lib.fusion import Objection
from course_lib.graph.nodes import LONGEST_CELL, code_table
from course_lib.show import Cell, Table, format_count


@dataclass(frozen=True, repr=False)
class Report:
    """A report on lowered graphs that prints as text and shows as tables in a notebook."""

    target: str
    names: tuple[str, ...]
    graphs: tuple[Lowered, ...]
    cache_hits: int
    cache_misses: int

    def summary(self) -> Table:
        """Return a row for each graph: launches and bytes moved in eager PyTorch, and with the target."""
        rows = [
            (
                name,
                f"{sum(part.kept for part in graph.parts)} of {len(graph.parts)}",
                _before_after(graph, "launches"),
                _before_after(graph, "bytes_moved"),
            )
            for name, graph in self._named()
        ]
        return code_table(("graph", "parts kept", "launches", "bytes moved"), tuple(rows))

    def parts(self) -> Table:
        """Return a row for each kind of part: what it consists of, who computes it, and what that costs."""
        kinds: dict[tuple[str, ...], list[str]] = {}
        for name, graph in self._named():
            for part in graph.parts:
                kinds.setdefault((name, _operators(part), *_outcome(part)), []).append(part.name)
        rows = tuple(
            (graph, names[0] + (f" and {len(names) - 1} like it" if names[1:] else ""), *rest)
            for (graph, *rest), names in kinds.items()
        )
        return code_table(("graph", "part", "operators", "computed by", "launches", "bytes moved", "remark"), rows)

    def refusals(self) -> Table:
        """Return a row for each reason why operators stay with eager PyTorch, the most frequent first."""
        counted = Counter(
            (name, refusal.operator, refusal.objection.rule, _general(refusal.objection, refusal.node))
            for name, graph in self._named()
            for refusal in graph.refusals
        )
        rows = [
            (name, Cell(operator, f"<code>{html.escape(operator)}</code>"), str(count), rule, why)
            for (name, operator, rule, why), count in counted.most_common()
        ]
        return Table(("graph", "operator", "times", "rule", "reason"), tuple(rows), longest=LONGEST_CELL)

    def __str__(self) -> str:
        if not self.graphs:
            return f"{self.target}: nothing was captured yet; call the compiled program first."
        return "\n\n".join([self._headline(), *(str(table) for table in self._tables())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._headline())}</p>" + "".join(table._repr_html_() for table in self._tables())

    def _headline(self) -> str:
        return f"{self.target}; cache: {self.cache_hits} hits, {self.cache_misses} misses"

    def _tables(self) -> Iterable[Table]:
        return (table for table in (self.summary(), self.parts(), self.refusals()) if table.rows)

    def _named(self) -> list[tuple[str, Lowered]]:
        return list(zip(self.names, self.graphs, strict=True))


def report(*graphs: Lowered) -> Report:
    """Return a report on graphs that `lower` returned, with a name for each: "graph", or "graph_0" and so on."""
    names = ("graph",) if len(graphs) == 1 else tuple(f"graph_{number}" for number in range(len(graphs)))
    found = [part.found_in_cache for graph in graphs for part in graph.parts if part.compiled is not None]
    target = ", ".join(dict.fromkeys(graph.target for graph in graphs)) or "no target"
    return Report(target, names, graphs, sum(found), len(found) - sum(found))


def _before_after(graph: Lowered, what: str) -> str:
    def number(spent: Spent | None) -> str:
        return "unknown" if spent is None else format_count(getattr(spent, what))

    return "sizes are symbols" if graph.before is None else f"{number(graph.before)} → {number(graph.after)}"


def _operators(part: PartOutcome) -> str:
    counted = Counter(name.partition(".")[2] for name in part.operators)
    return ", ".join(name if count == 1 else f"{name} ×{count}" for name, count in counted.items())


def _outcome(part: PartOutcome) -> Sequence[str]:
    if isinstance(part.compiled, Executable):
        remarks = [part.compiled.remark, "from the cache" if part.found_in_cache else ""]
        moved = format_count(part.compiled.bytes_moved)
        return "target", str(part.compiled.launches), moved, ", ".join(filter(None, remarks))
    if isinstance(part.compiled, Objection):
        return "eager", "", "", f"{part.compiled.rule}: {part.compiled.reason}"
    return "target", "", "", "compiled when it is called"


def _general(objection: Objection, node: str) -> str:
    """Return a reason without the name of one node, so that equal reasons count as one."""
    return objection.reason.replace(f"{node} ", "it ") if objection.reason.startswith(f"{node} ") else objection.reason
