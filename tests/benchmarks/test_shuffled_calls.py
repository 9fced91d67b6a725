"""Calls in any order that `course_lib.fusion.swaps` allows compute the same; without one of its rules, some differ."""

import random
from collections.abc import Callable, Iterator, Sequence

import pytest
from torch import fx

from benchmarks import effects_sweep
from course_lib.fusion import GraphPass
from course_lib.fusion.result import Rejected
from course_lib.fusion.swaps import Swappable, objection_to_swapping, swappable
from tests.drawn import some

PROGRAMS, TRIED = 400, 40  # others in each run
SHUFFLED = "memory_order"  # stands in the place of the pass that the sweep always asks for


class Shuffled(GraphPass):
    """Put the calls of a graph in some order that the rules allow, once."""

    name = SHUFFLED
    by_default = False

    def __init__(self, ignored: str = "") -> None:
        super().__init__()
        self._ignored, self.moved = ignored, 0

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        calls = [node for node in gm.graph.nodes if node.op.startswith("call_")]
        if self.moved or any("val" not in node.meta for node in calls):
            return 0, []
        order = list(self._shuffled(calls))
        self.moved = int(order != calls)
        for node in order:
            gm.graph.output_node().prepend(node)
        return self.moved, []

    def _shuffled(self, calls: Sequence[fx.Node]) -> Iterator[fx.Node]:
        draw, waiting = random.Random(len(calls)), [swappable(node) for node in calls]
        while waiting:
            free = [one for place, one in enumerate(waiting) if not any(map(self._after(one), waiting[:place]))]
            waiting.remove(one := draw.choice(free[-2:]))
            yield one.node

    def _after(self, last: Swappable) -> Callable[[Swappable], bool]:
        def must_follow(first: Swappable) -> bool:
            objection = objection_to_swapping(first, last)
            allowed = objection is None or objection.rule == self._ignored
            return first.node in last.node.all_input_nodes or not allowed

        return must_follow


def _tried(number: int, monkeypatch: pytest.MonkeyPatch, ignored: str = "") -> tuple[bool, str]:
    """Return whether the calls of a generated program were moved, and what came out wrong."""
    passes: list[Shuffled] = []

    def one() -> Shuffled:
        passes.append(Shuffled(ignored))
        return passes[-1]

    one.by_default = True  # type: ignore[attr-defined]  # as a class of passes has it
    fused = effects_sweep.fuse
    monkeypatch.setattr(effects_sweep, "PASSES", {SHUFFLED: one})
    monkeypatch.setattr(effects_sweep, "fuse", lambda module, inputs, names: fused(module, inputs, [one()]))
    wrong = effects_sweep.try_effect(number).wrong
    monkeypatch.undo()
    return any(each.moved for each in passes), wrong


def test_any_order_that_the_rules_allow_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [_tried(number, monkeypatch) for number in some(range(PROGRAMS), TRIED, name="shuffled programs")]
    assert [wrong for _, wrong in outcomes if wrong] == []
    assert sum(moved for moved, _ in outcomes) > TRIED / 2


# Without the rule, the program of this number comes out wrong.
IGNORED = {"mutation": 5, "random order": 14, "unobserved": 2}


@pytest.mark.parametrize("rule", IGNORED)
def test_without_one_rule_a_program_comes_out_wrong(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _tried(IGNORED[rule], monkeypatch)[1] == ""
    assert _tried(IGNORED[rule], monkeypatch, ignored=rule)[1]


def test_two_calls_without_effects_may_swap() -> None:
    graph = fx.symbolic_trace(lambda x: x.exp() + x.sin()).graph
    first, last = (swappable(node) for node in list(graph.nodes)[1:3])
    assert objection_to_swapping(first, last) is None
    assert objection_to_swapping(last, first) is None
