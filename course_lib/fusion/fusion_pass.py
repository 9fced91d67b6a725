"""The base classes of all passes: `GraphPass` changes a graph, `FusionPass` fuses the matches of a pattern."""

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import ClassVar

from torch import fx
from torch.fx.passes.infra.pass_base import PassBase

from course_lib.fusion.calls import operator_of
from course_lib.fusion.guards import common_objection
from course_lib.fusion.inserted_modules import CheckedFusion, Decision
from course_lib.fusion.matching import Match, Pattern
from course_lib.fusion.operators import Operator
from course_lib.fusion.result import FusionResult, Rejected, closest_refusal
from course_lib.fusion.rules import Objection
from course_lib.fusion.storage import mutating_nodes
from course_lib.fusion.surgery import copy_of, erase, excerpt, finish, put_in_place_of, put_module_in_place_of


class GraphPass(PassBase):
    """A pass from graph to graph, which works on a copy and returns a `FusionResult`.

    A subclass has a `name` and a method `transform`, which changes the copy. `level` is "exact" if the program still
    computes the same real function, and "lossy" if it computes another one on purpose. A pass with `by_default` false
    runs only if requested. If no pass of a run `reads_operators`, the parts of larger operators stay as they are.
    """

    name: ClassVar[str]
    level: ClassVar[str] = "exact"
    by_default: ClassVar[bool] = True
    reads_operators: ClassVar[bool] = True

    def call(self, graph_module: fx.GraphModule) -> FusionResult:  # type: ignore[override]  # a PassResult with more
        """Return the transformed copy of `graph_module`; raise `FusionError` if it is no graph module."""
        copied = copy_of(graph_module)
        num_matches, rejected = self.transform(copied)
        if num_matches:
            finish(copied)
        return FusionResult(copied, num_matches, tuple(rejected), {self.name: num_matches})

    @abstractmethod
    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Change `gm` in place; return the number of changes, and the rejected matches with their reasons."""


class FusionPass(GraphPass):
    """A pass that replaces each match of one of its `patterns` by one computation.

    A subclass defines three things in plain Python:

    - `patterns`: functions of PyTorch operators to look for, the largest first. Their parameters match any value, and
      are the names of the match's operands. Every spelling matches, see `operators.py`.
    - `guard(match)`: returns an `Objection` if the fused computation would differ; the rules for all passes are in
      `guards.py`.
    - `replacement(match)`: returns a function of the same parameters, which computes the result instead.

    If the guard objects because a shape is unknown, the pass decides when the match runs, see `inserted_modules.py`,
    unless `checks_at_run_time` is false.
    """

    patterns: ClassVar[Sequence[Callable[..., object]]]
    checks_at_run_time: bool = True

    def guard(self, match: Match) -> Objection | None:
        """Return why this match must be left alone, or None."""
        return None

    @abstractmethod
    def replacement(self, match: Match) -> Callable[..., object]:
        """Return the function of the pattern's parameters that replaces the match."""

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Fuse each match that may be fused, one by one, because a rewrite may replace an operand of a later match."""
        patterns: dict[Operator | None, list[Pattern]] = {}
        for pattern in map(_read, self.patterns):
            patterns.setdefault(pattern.operator, []).append(pattern)
        rejected: list[Rejected] = []
        num_matches = 0
        writers = mutating_nodes(gm.graph)  # a fusion neither adds nor removes one
        for node in list(gm.graph.nodes):
            refusals: list[tuple[Objection, Match]] = []
            for match in _matches(patterns.get(operator_of(node), ()), node, writers):
                objection = common_objection(match) or self.guard(match)
                if objection is None:
                    put_in_place_of(match.anchor, self.replacement(match), match.operands)
                    erase(match.nodes)
                    num_matches += 1
                    break
                refusals.append((objection, match))
            else:
                if self._fuse_under_a_check(refusals):
                    num_matches += 1
                else:
                    rejected += closest_refusal(self.name, refusals)
        return num_matches, rejected

    def known_only(self) -> "FusionPass":
        """Return a copy of this pass that refuses a match whose shapes are unknown."""
        twin = copy.copy(self)
        twin.checks_at_run_time = False
        return twin

    def decide(self, gm: fx.GraphModule) -> Decision:
        """Return the fused graph and "fused", or None and why it was not fused."""
        result = self.call(gm)
        if result.num_matches:
            return result.graph_module, "fused"
        return None, "; ".join(f"not fused: {one.reason}" for one in result.rejected) or "not fused"

    def _fuse_under_a_check(self, refusals: list[tuple[Objection, Match]]) -> bool:
        """Replace the first match with unknown shapes by a `CheckedFusion`; return whether that was possible."""
        objection, match = next((pair for pair in refusals if pair[0].rule == "shape unknown"), (None, None))
        cut = excerpt(match) if match is not None and self.checks_at_run_time else None
        if objection is None or match is None or cut is None:
            return False
        written, operands = cut
        checked = CheckedFusion(
            written,
            self.known_only().decide,
            pass_name=self.name,
            names=[node.name for node in match.nodes],
            reason=objection.reason,
        )
        put_module_in_place_of(match.anchor, f"checked_{self.name}", checked, operands)
        erase(match.nodes)
        return True


def _read(function: Callable[..., object]) -> Pattern:
    """Trace a pattern; only a pattern of this library is cached, because a notebook may redefine its functions."""
    return _read_once(function) if function.__module__.startswith("course_lib.") else Pattern(function)


_read_once = cache(Pattern)


def _matches(patterns: Sequence[Pattern], node: fx.Node, writers: tuple[fx.Node, ...]) -> Iterator[Match]:
    for pattern in patterns:
        yield from pattern.matches(node, writers)
