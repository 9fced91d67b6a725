"""Lower a graph to a target: decompose, ask, partition, compile, price, and leave the rest to eager PyTorch."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from course_lib.backends.aten import decompose, eager_cost, fake_mode_of, has_symbols
from course_lib.backends.cache import CompileCache
from course_lib.backends.compiling import Compiled, CompiledPart, PartOutcome, outcome_of
from course_lib.backends.partitioning import partition
from course_lib.backends.prices import Prices, Spent
from course_lib.backends.splitting import cut_out, split
from course_lib.backends.support import target_name
from course_lib.backends.target import Executable, Target
from course_lib.errors import BackendError
from course_lib.fusion import Objection
from course_lib.graph import Cost, cost


@dataclass(frozen=True)
class Refusal:
    """An operator that stays with eager PyTorch, and why."""

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
    before: Spent | None  # by the graph as it came, in eager PyTorch; None where sizes are symbols
    after: Spent | None  # by target and eager PyTorch together

    def __call__(self, *inputs: object) -> Any:
        """Compute what the program computes."""
        with torch.no_grad():
            return self.graph_module(*inputs)


def lower(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    target: Target,
    *,
    prices: Prices | None = None,
    cache: CompileCache[Compiled] | None = None,
) -> Lowered:
    """Return a graph in which `target` computes what it can. The graph that is given stays as it is.

        >>> from course_lib.backends.toy import ToyTarget
        >>> gm = fx.symbolic_trace(lambda x, y: torch.relu(x + y) * y)
        >>> lowered = lower(gm, (torch.ones(64, 64), torch.ones(64, 64)), ToyTarget())
        >>> lowered.before.launches, lowered.after.launches
        (3, 1)

    Example inputs say shapes, strides, types and device; a part that is later called with others is compiled again.
    What eager PyTorch keeps, and why, is in `refusals` and in the objections of `parts`. By `prices`, a part that is
    too small to be worth it is left to eager PyTorch, and so is the graph as it came if it would come out slower:
    operators that were decomposed for the target may cost eager PyTorch more. A `cache` of your own is shared by all
    that you give it to.

    Raises `BackendError` if `gm` is no graph module, or cannot run on the example inputs.
    """
    _check(gm, target)
    prices = Prices() if prices is None else prices
    store: CompileCache[Compiled] = CompileCache() if cache is None else cache
    core = decompose(gm, example_inputs)
    symbols = has_symbols(example_inputs)
    objections = {node: target.objection(node) for node in core.graph.nodes}
    parts = cut_out(core, partition(core.graph, lambda node: objections[node] is None))
    modules = [CompiledPart(part.graph_module, target, prices, store) for part in parts]
    outcomes = [
        outcome_of(part, module, None if symbols else store) for part, module in zip(parts, modules, strict=True)
    ]
    kept = {part: module for part, module, outcome in zip(parts, modules, outcomes, strict=True) if outcome.kept}
    lowered = split(core, tuple(kept))
    refusals = tuple(
        Refusal(node.name, target_name(node), why) for node, why in objections.items() if why and _costs(node)
    )
    for part, module in kept.items():
        lowered.set_submodule(part.name, module)
    if symbols:
        return Lowered(lowered, tuple(outcomes), refusals, None, None)
    before, after = _spent(eager_cost(gm, example_inputs)), _spent_after(lowered, outcomes)
    loss = prices.loss(before, after)
    if kept and loss is not None:
        left = tuple(replace(outcome, compiled=loss) if outcome.kept else outcome for outcome in outcomes)
        return Lowered(gm, left, refusals, before, before)
    return Lowered(lowered, tuple(outcomes), refusals, before, after)


def _check(gm: object, target: object) -> None:
    if not isinstance(gm, fx.GraphModule):
        raise BackendError(
            f"lower takes a torch.fx.GraphModule and got {type(gm).__name__}; "
            "capture the program first: capture(model, example_inputs).graph_module."
        )
    if not isinstance(target, Target):
        raise BackendError(f"lower takes a Target, such as ToyTarget(); got {target!r}.")


def _costs(node: fx.Node) -> bool:
    """Tell whether a node is an operator on tensors, and not one on sizes, or a choice from several results."""
    value = node.meta.get("val")
    on_sizes = isinstance(value, (int, float, torch.SymInt, torch.SymFloat, torch.SymBool))
    return node.op.startswith("call_") and not on_sizes and node.target is not operator.getitem


def _spent(cost_of_run: Cost) -> Spent:
    return Spent(cost_of_run.launches, cost_of_run.bytes_moved)


def _spent_after(lowered: fx.GraphModule, outcomes: Sequence[PartOutcome]) -> Spent:
    """Return what target and eager PyTorch spend together."""
    with fake_mode_of(lowered.graph):
        rest = cost(lambda: _Rest(lowered).run(*lowered.graph.find_nodes(op="placeholder")), ())
    executables = [outcome.compiled for outcome in outcomes if isinstance(outcome.compiled, Executable)]
    return Spent(
        rest.launches + sum(executable.launches for executable in executables),
        rest.bytes_moved + sum(executable.bytes_moved for executable in executables),
    )


class _Rest(fx.Interpreter):
    """Runs what eager PyTorch keeps on fake values, and takes everything else as known."""

    def run_node(self, n: fx.Node) -> Any:
        if n.op in ("placeholder", "get_attr", "call_module"):
            return n.meta["val"]
        return super().run_node(n)
