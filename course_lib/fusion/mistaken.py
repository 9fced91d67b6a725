"""Three small passes, each with an option to make a typical mistake.

    >>> gm = torch.fx.symbolic_trace(lambda x: x.add_(1) * 0 + x)
    >>> drop_dead_code(gm).code == gm.code
    True

Each pass returns a new graph module and does not change its argument. An option selects the mistake. Without it, the
pass is correct, but more careful than necessary. Each mistake can be shown by a counterexample.
"""

import copy
from collections.abc import Collection, Hashable, Iterable
from operator import attrgetter

import torch
from torch import fx, nn

from course_lib.errors import FusionError
from course_lib.fusion.effects import is_random, mutates

CALLS = ("call_function", "call_method")
OVERSIGHTS = ("", "keywords", "numbers", "order", "writes")
LAPSES = ("", "bias", "other calls", "other readers")


def drop_dead_code(gm: fx.GraphModule, *, overlooks: str = "") -> fx.GraphModule:
    """Erase nodes without users; `overlooks` names an in-place method, such as `neg_`, that it treats as pure."""
    gm = copy.deepcopy(gm)

    def stays(node: fx.Node) -> bool:
        if node.op in ("placeholder", "output") or is_random(node):
            return True
        return mutates(node) and node.target != overlooks

    gm.graph.eliminate_dead_code(is_impure_node=stays)
    gm.recompile()
    return gm


def share_equal(gm: fx.GraphModule, *, overlooks: str = "") -> fx.GraphModule:
    """Compute equal calls once.

    `overlooks` is empty or one of these: `keywords` (arguments by name), `numbers` (arguments that are not nodes),
    `order` (x − y and y − x count as equal), `writes` (in-place calls between two equal ones, or later into one of
    them). Raises `FusionError` for anything else.
    """
    _expect(overlooks, OVERSIGHTS, "overlooks")
    gm = copy.deepcopy(gm)
    seen: dict[Hashable, fx.Node] = {}
    changing = set() if overlooks == "writes" else _reached_by_writes(gm.graph)
    for node in list(gm.graph.nodes):
        if mutates(node):
            if overlooks != "writes":
                seen.clear()
        elif node.op in CALLS and not is_random(node) and node not in changing:
            first = seen.setdefault(_key(node, overlooks), node)
            if first is not node:
                node.replace_all_uses_with(first)
                gm.graph.erase_node(node)
    gm.recompile()
    return gm


def _reached_by_writes(graph: fx.Graph) -> set[fx.Node]:
    """Return the nodes whose results a write may reach, through views too: all that leads to its operands."""
    reached: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if mutates(node) or node in reached:
            reached.update(node.all_input_nodes)
    return reached


def _key(node: fx.Node, overlooks: str) -> Hashable:
    args = [arg if isinstance(arg, fx.Node) else repr(arg) for arg in node.args]
    if overlooks == "numbers":
        args = [arg for arg in args if isinstance(arg, fx.Node)]
    if overlooks == "order":
        args.sort(key=str)
    named = () if overlooks == "keywords" else repr(sorted(node.kwargs.items()))
    return node.target, tuple(args), named


def fold_factor(gm: fx.GraphModule, *, forgets: str = "", above: float = 0.0) -> fx.GraphModule:
    """Fold a number that multiplies a Linear's result into its weight and bias, if it is larger than `above`.

    `forgets` is empty or one of these: `bias`, `other calls` (of the same Linear), `other readers` (of the result).
    Raises `FusionError` for any other value.
    """
    _expect(forgets, LAPSES, "forgets")
    gm = copy.deepcopy(gm)
    for node in list(gm.graph.nodes):
        if node.target not in (torch.mul, "mul") and getattr(node.target, "__name__", "") != "mul":
            continue
        factors = [arg for arg in node.args if isinstance(arg, int | float)]
        calls = [arg for arg in node.args if isinstance(arg, fx.Node) and arg.op == "call_module"]
        if len(factors) != 1 or len(calls) != 1 or factors[0] <= above:
            continue
        (call,) = calls
        linear = gm.get_submodule(str(call.target))
        if type(linear) is nn.Linear and _may_fold(gm, call, forgets):
            _scale(linear, factors[0], bias=forgets != "bias")
            node.replace_all_uses_with(call)
            gm.graph.erase_node(node)
    gm.recompile()
    return gm


def _may_fold(gm: fx.GraphModule, call: fx.Node, forgets: str) -> bool:
    own = {id(parameter) for parameter in gm.get_submodule(str(call.target)).parameters()}
    reading = [node for node in gm.graph.nodes if own & {id(parameter) for parameter in _parameters_of(gm, node)}]
    return (len(reading) == 1 or forgets == "other calls") and (len(call.users) == 1 or forgets == "other readers")


def _parameters_of(gm: fx.GraphModule, node: fx.Node) -> Iterable[object]:
    """Return the parameters that a node reads: of the module that it calls, or the one that it fetches."""
    if node.op == "call_module":
        return gm.get_submodule(str(node.target)).parameters()
    return [attrgetter(str(node.target))(gm)] if node.op == "get_attr" else []


def _scale(linear: nn.Linear, factor: float, *, bias: bool) -> None:
    with torch.no_grad():
        linear.weight.mul_(factor)
        if linear.bias is not None and bias:
            linear.bias.mul_(factor)


def _expect(given: str, known: Collection[str], name: str) -> None:
    if given not in known:
        raise FusionError(
            f"{name}={given!r} is no mistake that can be made; known are {', '.join(filter(None, known))}."
        )
