"""The result of a pass: a new graph, and a report on what was fused and what was refused."""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from course_lib.fusion.inserted_modules import CheckedFusion
from course_lib.fusion.matching import Match
from course_lib.fusion.rules import Objection, closeness, remedy, source_of
from course_lib.graph import Cost
from course_lib.graph.nodes import arguments, operator_name


@dataclass(frozen=True)
class Rejected:
    """Nodes that match the pattern of a pass, and the reason why the pass did not change them."""

    nodes: tuple[str, ...]  # names, in graph order
    rule: str  # a short name, the same for the same reason
    reason: str  # a sentence that says why the nodes were not fused
    pass_name: str = ""
    source: str = ""  # the line of the program that the nodes came from, where it is known
    remedy: str = ""  # a change that would allow the fusion

    def __str__(self) -> str:
        return f"{', '.join(self.nodes)}: {self.reason}"


def refusal(pass_name: str, nodes: tuple[str, ...], objection: Objection, node: torch.fx.Node) -> Rejected:
    """Return the report on a match that a pass refuses, with the program line of `node`."""
    rule, reason = objection.rule, objection.reason
    return Rejected(nodes, rule, reason, pass_name, _source(node), remedy(rule))


def closest_refusal(pass_name: str, refusals: Sequence[tuple[Objection, Match]]) -> list[Rejected]:
    """Return one report on the rejected matches of a place, for the match that came closest to being fused."""
    if not refusals:
        return []
    objection, match = max(refusals, key=lambda pair: closeness(pair[0]))
    return [refusal(pass_name, tuple(node.name for node in match.nodes), objection, match.anchor)]


def _source(node: torch.fx.Node) -> str:
    """Return the innermost line of a node's stack trace, such as "model.py:12, in forward: `x = x + y`"."""
    source = source_of(node)
    if source is None:
        return ""
    place, function, text = source
    return f"{place}, in {function}" + (f": `{text}`" if text else "")


@dataclass(frozen=True, repr=False)
class FusionResult:
    """The graph after one or more passes. The given program is not changed.

    It can be used where torch.fx expects a `PassResult`.
    """

    graph_module: torch.fx.GraphModule
    num_matches: int  # of all passes together
    rejected: tuple[Rejected, ...] = ()
    num_matches_by_pass: Mapping[str, int] = field(default_factory=dict)
    cost_before: Cost | None = None  # of one run, forward; known after `fuse`
    cost_after: Cost | None = None
    lost: tuple[str, ...] = ()  # what the program does on the example and its captured graph does not

    @property
    def modified(self) -> bool:
        """Tell whether the graph differs from the one that was given."""
        return self.num_matches > 0

    @property
    def checked(self) -> Mapping[str, CheckedFusion]:
        """Return the modules that decide on a fusion when they run, because a shape was unknown, by node name."""
        calls = self.graph_module.graph.find_nodes(op="call_module")
        found = {node.name: self.graph_module.get_submodule(str(node.target)) for node in calls}
        return {name: module for name, module in found.items() if isinstance(module, CheckedFusion)}

    def explain(self) -> str:
        """Return a text on each rejected match: its place, the reason, and a change that would allow the fusion.

            >>> from course_lib.fusion import fuse
            >>> x = torch.zeros(2, 3)
            >>> print(fuse(lambda x, b: torch.nn.functional.gelu(torch.add(x, b, alpha=2)), (x, x[0])).explain())
            1 place looks like something that can be fused, and was left as it is:
            <BLANKLINE>
            bias_gelu left add, gelu alone.
              what is there: add = torch.add(x, b, alpha=2)
                             gelu = torch.nn.functional.gelu(add)
              ...
              why (alpha): add has alpha=2; only alpha=1 can be fused.
              what would help: Write the factor as a multiplication of its own, or use alpha=1.

        Places that differ only in the names of their nodes are listed once, with a count. Fusions that are decided when
        the graph runs come last.
        """
        return "\n\n".join(
            [*self._losses(), self._headline(), *self._near_misses(), *map(_explain_check, self.checked.items())]
        )

    def _losses(self) -> list[str]:
        said = ["On the example, the captured graph does not do all that the program does:", *self.lost]
        return ["\n  ".join(said)] if self.lost else []

    def _headline(self) -> str:
        if not self.rejected:
            return "Nothing that looks like a pattern was left alone."
        places = "1 place looks" if len(self.rejected) == 1 else f"{len(self.rejected)} places look"
        left = "was left as it is" if len(self.rejected) == 1 else "were left as they are"
        return f"{places} like something that can be fused, and {left}:"

    def _near_misses(self) -> list[str]:
        alike: dict[object, list[Rejected]] = {}
        for one in self.rejected:
            said = functools.reduce(lambda text, name: re.sub(rf"\b{name}\b", "…", text), one.nodes, one.reason)
            alike.setdefault((one.pass_name, one.rule, one.source, len(one.nodes), said), []).append(one)
        nodes = {node.name: node for node in self.graph_module.graph.nodes}
        return [_explain(group, nodes) for group in alike.values()]

    def __str__(self) -> str:
        lines = [f"{self.num_matches} fused, {len(self.rejected)} left alone"]
        lines += [f"  {name}: {count}" for name, count in self.num_matches_by_pass.items() if count]
        if self.checked:
            lines.append(f"  under a check when the graph runs: {len(self.checked)}")
        before, after = self.cost_before, self.cost_after
        if before is not None and after is not None:
            lines.append(f"  launches: {before.launches} before, {after.launches} after")
            lines.append(f"  bytes moved: {before.bytes_moved:,} before, {after.bytes_moved:,} after")
            if before == after and before.peak_bytes != after.peak_bytes:
                lines.append(f"  bytes alive at once: {before.peak_bytes:,} before, {after.peak_bytes:,} after")
        lines += [f"  lost by the capture: {text}" for text in self.lost]
        return "\n".join([*lines, *(f"  {refusal}" for refusal in self.rejected)])

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form


def _explain(group: Sequence[Rejected], nodes: Mapping[str, torch.fx.Node]) -> str:
    refusal, *others = group
    there = [f"{name} = {_call(nodes[name])}" for name in refusal.nodes if name in nodes]
    lines = [
        f"{refusal.pass_name or 'a pass'} left {', '.join(refusal.nodes)} alone.",
        "  what is there: " + "\n                 ".join(there) if there else "",
        f"  where: {refusal.source}" if refusal.source else "",
        f"  why ({refusal.rule}): {refusal.reason}.",
        f"  what would help: {refusal.remedy}" if refusal.remedy else "",
        f"  and {len(others)} more like it, such as {', '.join(others[0].nodes)}" if others else "",
    ]
    return "\n".join(line for line in lines if line)


def _call(node: torch.fx.Node) -> str:
    called = str(node.target) if node.op == "call_module" else operator_name(node)
    return f"{called}({arguments(node)})"


def _explain_check(entry: tuple[str, CheckedFusion]) -> str:
    name, module = entry
    lines = [
        f"{module.pass_name} fuses {', '.join(module.names)} when the graph runs, if their operands allow it.",
        f"  why then: {module.reason}.",
        f"  where it stands: {name}; else the operators run as they were written",
    ]
    return "\n".join(lines)
