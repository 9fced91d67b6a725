"""A table of the operators that a target takes, each with conditions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import fx

from course_lib.fusion import Objection
from course_lib.fusion.effects import is_pure, is_random
from course_lib.graph.nodes import operator_name

Condition = Callable[[fx.Node], Objection | None]


def target_name(node: fx.Node) -> str:
    """Return the operator that a node calls, without the overload: "aten.add" for `torch.ops.aten.add.Tensor`.

    Other targets have the name that tables show, such as "torch.relu".
    """
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return str(target._schema.name).replace("::", ".")
    return operator_name(node)


def tensor_of(node: fx.Node) -> torch.Tensor | None:
    """Return the fake tensor of a node's result, which may have symbolic sizes; None if it is no single tensor."""
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) else None


@dataclass(frozen=True)
class Support:
    """A table of operators that a target takes, with conditions; every refusal has a reason.

        >>> support = Support({"aten.relu": (), "aten.mul": (dtypes(torch.float32),)})
        >>> graph = fx.Graph()
        >>> x = graph.placeholder("x")
        >>> support.objection(graph.call_function(torch.ops.aten.exp.default, (x,))).reason
        'the target has no aten.exp'

    `always` are conditions of all operators. An operator that draws random numbers, changes a tensor in place or has
    another effect is refused in any case: a part that holds it could not be moved as a whole.
    """

    operators: Mapping[str, tuple[Condition, ...]]
    always: tuple[Condition, ...] = field(default=())

    def objection(self, node: fx.Node) -> Objection | None:
        """Return why the target does not take a node, or None if it does."""
        if node.op not in ("call_function", "call_method", "call_module"):
            return Objection("no operator", f"{node} is {node.op}, which computes nothing")
        name = target_name(node)
        if is_random(node):
            return Objection("random", f"{name} draws random numbers, whose order eager PyTorch keeps")
        if not is_pure(node):
            return Objection("effect", f"{name} may do more than compute its result")
        if name not in self.operators:
            return Objection("operator", f"the target has no {name}")
        found = (condition(node) for condition in (*self.always, *self.operators[name]))
        return next((objection for objection in found if objection is not None), None)


def dtypes(*allowed: torch.dtype) -> Condition:
    """Return a condition that the result and all operands have one of these types."""

    def condition(node: fx.Node) -> Objection | None:
        for value in (node, *node.all_input_nodes):
            facts = tensor_of(value)
            if facts is not None and facts.dtype not in allowed:
                listed = ", ".join(map(_short, allowed))
                return Objection("dtype", f"{value} is {_short(facts.dtype)}; {target_name(node)} takes {listed}")
        return None

    return condition


def rank_at_most(limit: int) -> Condition:
    """Return a condition that the result and all operands have at most `limit` dimensions."""

    def condition(node: fx.Node) -> Objection | None:
        for value in (node, *node.all_input_nodes):
            facts = tensor_of(value)
            if facts is not None and facts.dim() > limit:
                return Objection("rank", f"{value} has {facts.dim()} dimensions; at most {limit} are taken")
        return None

    return condition


def gives_a_tensor(node: fx.Node) -> Objection | None:
    """Require that the result is one tensor of known shape."""
    if tensor_of(node) is None:
        return Objection("result", f"{target_name(node)} gives no single tensor of known shape")
    return None


def one_dtype(node: fx.Node) -> Objection | None:
    """Require that all operands have one type, so that no type is promoted."""
    found = {facts.dtype for value in node.all_input_nodes if (facts := tensor_of(value)) is not None}
    if len(found) > 1:
        listed = " and ".join(sorted(map(_short, found)))
        return Objection("mixed dtypes", f"{target_name(node)} reads {listed}; convert to one type first")
    return None


def keeps_dtype(node: fx.Node) -> Objection | None:
    """Require that the result has the type of the operands."""
    facts = tensor_of(node)
    for value in node.all_input_nodes:
        given = tensor_of(value)
        if facts is not None and given is not None and given.dtype != facts.dtype:
            reason = f"{target_name(node)} makes {_short(facts.dtype)} of {_short(given.dtype)}; convert first"
            return Objection("mixed dtypes", reason)
    return None


def argument_is(name: str, *allowed: object) -> Condition:
    """Return a condition that the argument `name`, given by name or by position, has one of these values.

    An omitted argument has the default value of the schema.
    """

    def condition(node: fx.Node) -> Objection | None:
        value = argument(node, name)
        if any(value is one or (type(value) is type(one) and value == one) for one in allowed):
            return None
        listed = " or ".join(map(repr, allowed))
        return Objection("argument", f"{target_name(node)} has {name}={value}; only {name}={listed} is taken")

    return condition


def argument(node: fx.Node, name: str) -> object:
    """Return an argument of a node by its name in the operator's schema: given by name, by position, or its default.

    The result is None if the schema has no such argument. The node must call an `OpOverload`: for any other call, an
    assertion fails.
    """
    target = node.target
    assert isinstance(target, torch._ops.OpOverload), "only operators of the dispatcher have a schema"
    for position, declared in enumerate(target._schema.arguments):
        if declared.name == name:
            if name in node.kwargs:
                return node.kwargs[name]
            return node.args[position] if position < len(node.args) else declared.default_value
    return None


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
