"""What a pass gives back: a new graph, and an account of what was fused and what was not."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from course_lib.fusion.rules import Objection, remedy
from course_lib.graph import Cost


@dataclass(frozen=True)
class Rejected:
    """Nodes that look like the pattern of a pass, and why the pass left them alone."""

    nodes: tuple[str, ...]  # names, in graph order
    rule: str  # a short name, the same for the same reason
    reason: str  # a sentence for the person who wonders why this was not fused
    pass_name: str = ""
    source: str = ""  # the line of the program that the nodes came from, where it is known
    remedy: str = ""  # what would let the nodes fuse

    def __str__(self) -> str:
        return f"{', '.join(self.nodes)}: {self.reason}"


def refusal(pass_name: str, nodes: tuple[str, ...], objection: Objection, node: torch.fx.Node) -> Rejected:
    """Return the account of a match that a pass leaves alone; `node` knows the line of the program."""
    rule, reason = objection.rule, objection.reason
    return Rejected(nodes, rule, reason, pass_name, _source(node), remedy(rule))


def _source(node: torch.fx.Node) -> str:
    """Return the innermost line of a node's stack trace, such as "model.py:12, in forward: `x = x + y`"."""
    found = list(re.finditer(r'File "(.+?)", line (\d+), in (\S+)\n?([^\n]*)', node.stack_trace or ""))
    if not found:
        return ""
    file, line, function, text = found[-1].groups()
    return f"{Path(file).name}:{line}, in {function}" + (f": `{text.strip()}`" if text.strip() else "")


@dataclass(frozen=True, repr=False)
class FusionResult:
    """The graph after one pass or several. The program that was given is as it was.

    It stands wherever torch.fx expects a `PassResult`.
    """

    graph_module: torch.fx.GraphModule
    num_matches: int  # of all passes together
    rejected: tuple[Rejected, ...] = ()
    num_matches_by_pass: Mapping[str, int] = field(default_factory=dict)
    cost_before: Cost | None = None  # of one run, forward; known after `fuse`
    cost_after: Cost | None = None

    @property
    def modified(self) -> bool:
        """Whether the graph differs from the one that was given."""
        return self.num_matches > 0

    def explain(self) -> str:
        """Return, for every near miss, where it is, why it was left alone, and what would let it fuse."""
        if not self.rejected:
            return "Nothing that looks like a pattern was left alone."
        return "\n".join(_explain(refusal) for refusal in self.rejected)

    def __str__(self) -> str:
        fused = f"{self.num_matches} fused, {len(self.rejected)} left alone"
        return "\n".join([fused, *self._by_pass(), *self._cost(), *(f"  {refusal}" for refusal in self.rejected)])

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form

    def _by_pass(self) -> list[str]:
        return [f"  {name}: {count}" for name, count in self.num_matches_by_pass.items() if count]

    def _cost(self) -> list[str]:
        if self.cost_before is None or self.cost_after is None:
            return []
        before, after = self.cost_before, self.cost_after
        return [
            f"  launches: {before.launches} before, {after.launches} after",
            f"  bytes moved: {before.bytes_moved:,} before, {after.bytes_moved:,} after",
        ]


def _explain(refusal: Rejected) -> str:
    lines = [
        f"{refusal.pass_name or 'a pass'} left {', '.join(refusal.nodes)} alone.",
        f"  where: {refusal.source}" if refusal.source else "",
        f"  why ({refusal.rule}): {refusal.reason}.",
        f"  what would help: {refusal.remedy}" if refusal.remedy else "",
    ]
    return "\n".join(line for line in lines if line)
