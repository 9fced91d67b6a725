"""Lower a graph to a target: decompose, partition, compile, compare costs, and leave the rest to eager PyTorch."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from course_lib.backends.aten import decompose, eager_cost, fake_mode_of, has_symbols
from course_lib.backends.compiled_part import (
    CompileCache,
    Compiled,
    CompiledPart,
    PartOutcome,
    Prices,
    Spent,
    outcome_of,
)
from course_lib.backends.parts import Part, computes, cut_out, partition, split
from course_lib.backends.support import target_name
from course_lib.backends.target import Executable, Target
from course_lib.errors import BackendError
from course_lib.fusion import Objection
from course_lib.graph import cost


@dataclass(frozen=True)
class Refusal:
    """An operator that eager PyTorch runs, and the reason."""

    node: str
    operator: str
    objection: Objection


@dataclass(frozen=True, repr=False)
class Lowered:
    """A graph that calls the target for its parts and eager PyTorch for the rest; call it as the program was called.

    It computes without gradients. To train, use `Backend`.
    """

    graph_module: fx.GraphModule
    parts: tuple[PartOutcome, ...]
    refusals: tuple[Refusal, ...]
    before: Spent | None  # by the original graph in eager PyTorch; None if sizes are symbols
    after: Spent | None  # by target and eager PyTorch together
    target: str = "target"

    def __call__(self, *inputs: object) -> Any:
        """Compute what the program computes."""
        with torch.no_grad():
            return self.graph_module(*inputs)

    def __repr__(self) -> str:
        kept = sum(part.kept for part in self.parts)
        costs = "sizes are symbols"
        if self.before is not None and self.after is not None:
            costs = f"{self.before.launches} launches became {self.after.launches}"
        return f"{self.target}: {kept} of {len(self.parts)} parts kept, {costs}; see report(…) for more"


def lower(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    target: Target,
    *,
    prices: Prices | None = None,
    cache: CompileCache[Compiled] | None = None,
) -> Lowered:
    """Return a graph in which `target` computes the supported parts; the given graph does not change.

        >>> from course_lib.backends.toy import ToyTarget
        >>> gm = fx.symbolic_trace(lambda x, y: torch.relu(x + y) * y)
        >>> lowered = lower(gm, (torch.ones(64, 64), torch.ones(64, 64)), ToyTarget())
        >>> lowered.before.launches, lowered.after.launches
        (3, 1)

    Example inputs determine shapes, strides, types and device; a part that is later called with others is compiled
    again. `refusals` and the objections of `parts` list the operators that eager PyTorch runs, with reasons. By
    `prices`, a part that is too small is left to eager PyTorch; None means `Prices()`. If the lowered graph is slower,
    the original graph runs instead, because decomposed operators may cost eager PyTorch more. Several calls can share
    one `cache`; None means a new one.

    Raises `BackendError` if `gm` is no graph module or cannot run on the example inputs, or if `target` is no `Target`.
    """
    _check(gm, target)
    prices = Prices() if prices is None else prices
    store: CompileCache[Compiled] = CompileCache() if cache is None else cache
    core = decompose(gm, example_inputs)
    symbols = has_symbols(example_inputs)
    objections = {node: target.objection(node) for node in core.graph.nodes}
    parts = cut_out(core, partition(core.graph, lambda node: objections[node] is None))
    modules = {part: CompiledPart(part.graph_module, target, prices, store) for part in parts}
    outcomes = {part: outcome_of(part, module, None if symbols else store) for part, module in modules.items()}
    lowered = _put_together(core, modules, outcomes)
    found = Lowered(lowered, tuple(outcomes.values()), _refusals(objections), None, None, target.name)
    return found if symbols else _unless_slower(gm, _counted(gm, example_inputs, found), prices)


def _put_together(
    core: fx.GraphModule, modules: Mapping[Part, CompiledPart], outcomes: Mapping[Part, PartOutcome]
) -> fx.GraphModule:
    kept = [part for part, outcome in outcomes.items() if outcome.kept]
    lowered = split(core, kept)
    for part in kept:
        lowered.set_submodule(part.name, modules[part])
    return lowered


def _counted(gm: fx.GraphModule, example_inputs: Sequence[object], lowered: Lowered) -> Lowered:
    """Return `lowered` with its cost and the cost of the original graph `gm`."""
    graph_module = lowered.graph_module
    with fake_mode_of(graph_module.graph):
        rest = cost(lambda: _Rest(graph_module).run(*graph_module.graph.find_nodes(op="placeholder")), ())
    executables = [part.compiled for part in lowered.parts if isinstance(part.compiled, Executable)]
    after = Spent(
        rest.launches + sum(executable.launches for executable in executables),
        rest.bytes_moved + sum(executable.bytes_moved for executable in executables),
    )
    eager = eager_cost(gm, example_inputs)
    return replace(lowered, before=Spent(eager.launches, eager.bytes_moved), after=after)


def _refusals(objections: Mapping[fx.Node, Objection | None]) -> tuple[Refusal, ...]:
    refused = {node: why for node, why in objections.items() if why is not None and _costs(node)}
    return tuple(Refusal(node.name, target_name(node), why) for node, why in refused.items())


def _unless_slower(gm: fx.GraphModule, lowered: Lowered, prices: Prices) -> Lowered:
    """Return a lowered graph, or the original graph if that is faster."""
    assert lowered.before is not None, "sizes are numbers here"
    assert lowered.after is not None, "sizes are numbers here"
    loss = prices.loss(lowered.before, lowered.after)
    if loss is None:
        return lowered
    left = tuple(replace(part, compiled=loss) if part.kept else part for part in lowered.parts)
    return replace(lowered, graph_module=gm, parts=left, after=lowered.before)


def _check(gm: object, target: object) -> None:
    if not isinstance(gm, fx.GraphModule):
        raise BackendError(
            f"lower takes a torch.fx.GraphModule and got {type(gm).__name__}; "
            "capture the program first: capture(model, example_inputs).graph_module."
        )
    if not isinstance(target, Target):
        raise BackendError(f"lower takes a Target, such as ToyTarget(); got {target!r}.")


def _costs(node: fx.Node) -> bool:
    """Return whether a node computes a tensor; views, `getitem` and sizes do not count."""
    value = node.meta.get("val")
    on_sizes = isinstance(value, (int, float, torch.SymInt, torch.SymFloat, torch.SymBool))
    chooses = node.target is operator.getitem
    return node.op.startswith("call_") and not on_sizes and not chooses and computes(node)


class _Rest(fx.Interpreter):
    """Run the eager part of a lowered graph on fake values; the values of all other nodes are known."""

    def run_node(self, n: fx.Node) -> Any:
        if n.op in ("placeholder", "get_attr", "call_module"):
            return n.meta["val"]
        return super().run_node(n)
