"""Compute a repeated expression only once.

Two nodes are equal if they call the same target with the same arguments, including nested and keyword arguments; `1`,
`1.0` and `True` are different. Equal nodes are not merged if an operand changes in place, or a switch such as autocast
is called, between them. Random numbers are drawn as often as the program draws them. A result that is changed in place,
or is returned together with its equal, stays a separate tensor.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from torch import fx

from course_lib.fusion.effects import is_repeatable
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.guards import objection_to_crossing
from course_lib.fusion.result import Rejected, refusal
from course_lib.fusion.rules import Objection, place_of
from course_lib.fusion.storage import Writers, changes_of_operands, may_share_memory, mutating_nodes, mutations_of
from course_lib.fusion.surgery import erase


class CommonSubexpressions(GraphPass):
    """Replace repeated nodes by the first equal node."""

    name = "common_subexpressions"

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Replace each repeated node by the first equal one; count the erased nodes."""
        returned = gm.graph.output_node().all_input_nodes
        fixed = _Fixed(mutating_nodes(gm.graph), returned)
        first: dict[Hashable, fx.Node] = {}
        rejected: list[Rejected] = []
        merged = 0
        for node in list(gm.graph.nodes):
            key = _key(node)
            earlier = first.setdefault(key, node) if key is not None else node
            if earlier is node:
                continue
            objection = _objection(earlier, node, fixed)
            if objection is None:
                node.replace_all_uses_with(earlier)
                erase((node,))
                merged += 1
            else:
                first[key] = node  # a third one may equal this one
                rejected.append(refusal(self.name, (earlier.name, node.name), objection, node))
        return merged, rejected


@dataclass(frozen=True)
class _Fixed:
    """The nodes of a graph that stay the same while others are merged."""

    writers: Writers
    returned: Sequence[fx.Node]


def _objection(earlier: fx.Node, node: fx.Node, fixed: _Fixed) -> Objection | None:
    """Return why two equal nodes must not be merged, or None."""
    if node.op == "get_attr":
        return None  # both nodes refer to the same object
    crossed = next((other for other in fixed.writers.opaque if earlier < other < node), None)
    if crossed is not None:
        return objection_to_crossing(crossed)
    among = fixed.writers
    changing = [other for other in changes_of_operands(earlier, among=among) if other < node]
    if changing:
        changed = f"{changing[0]}{place_of(changing[0])} changes an operand of {earlier} and {node}"
        return Objection("mutation", f"{changed} in place, between the two")
    changing = mutations_of((earlier,), after=earlier, among=among) or mutations_of((node,), after=node, among=among)
    if changing:
        changed = f"{changing[0]}{place_of(changing[0])} changes a result of {earlier} and {node} in place"
        return Objection("mutation", f"{changed}, and each has to stay a tensor of its own")
    if all(any(may_share_memory(one, output) for output in fixed.returned) for one in (earlier, node)):
        return Objection("is an output", f"{earlier} and {node} are both returned, as two tensors")
    return None


@dataclass(frozen=True)
class _Literal:
    """A literal that equals another only if both have the same type and the same text; 0.0 and -0.0 differ."""

    kind: type
    shown: str


def _key(node: fx.Node) -> Hashable | None:
    """Return a key that is equal for nodes with the same computation, or None if no other node can be equal."""
    if node.op not in ("get_attr", "call_function", "call_method", "call_module"):
        return None
    if node.op != "get_attr" and not is_repeatable(node):
        return None
    try:
        key = (node.op, node.target, _structure(node.args), _structure(node.kwargs))
        hash(key)
    except TypeError:  # an argument that cannot be compared, such as a tensor
        return None
    return key


def _structure(value: object) -> Hashable:
    if isinstance(value, fx.Node):
        return value
    if isinstance(value, (tuple, list)):
        return ("sequence", *map(_structure, value))
    if isinstance(value, dict):
        return ("mapping", frozenset((name, _structure(part)) for name, part in value.items()))
    if isinstance(value, slice):
        return ("slice", _structure(value.start), _structure(value.stop), _structure(value.step))
    if isinstance(value, (bool, int, float, complex, str)) or value is None:
        return _Literal(type(value), repr(value))
    hash(value)  # raises TypeError if the value is not hashable
    return (type(value), value)
