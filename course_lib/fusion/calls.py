"""Read what a node computes, whatever its spelling: the operator, and every argument by its name in the schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Signature

from torch import fx, nn

from course_lib.fusion.operators import (
    Operator,
    Spelling,
    function_spellings,
    method_spellings,
    operators,
    schema_name,
)
from course_lib.fusion.owned import MODULES, module_of, operator_name_of, owned_arguments
from course_lib.fusion.swaps import swapped_dimensions

# Parameters that never change what is computed.
_MEANINGLESS = frozenset({"_stacklevel", "cudnn_enable", "cudnn_enabled"})


@dataclass(frozen=True, eq=False)
class Call:
    """One node as a call of an operator."""

    node: fx.Node
    operator: Operator
    arguments: Mapping[str, object]  # all of them, in schema order; what was not written has its default
    in_place: bool = False  # whether the result is written into the first operand, or into `out`
    module: nn.Module | None = None  # the module that was called, if it was one

    @property
    def exact_module(self) -> bool:
        """Whether no subclass of a known module was called, which might compute something else."""
        return self.module is None or type(self.module) in MODULES

    def __getitem__(self, parameter: str) -> object:
        return self.arguments[parameter]


def read_call(node: object) -> Call | None:
    """Return the call that a node makes, or None if it calls no operator that the table knows.

        >>> graph = fx.symbolic_trace(lambda x, y: x.add(other=y)).graph
        >>> call = read_call(list(graph.nodes)[2])
        >>> call.operator, dict(call.arguments)
        (add, {'input': x, 'other': y, 'alpha': 1, 'out': None})

    A call that does not fit the operator's parameters is not known either: `torch.add(x, 2, y)` has a meaning of its
    own in old programs.
    """
    if not isinstance(node, fx.Node):
        return None
    if node.op == "call_module":
        return _read_module(node)
    swapped = swapped_dimensions(node)
    if swapped is not None:
        given = dict(zip(("input", "dim0", "dim1"), (node.all_input_nodes[0], *swapped), strict=True))
        return Call(node, operators()["transpose"], given)
    spelling = _spelling(node)
    if spelling is None:
        return None
    arguments = _bind(spelling.signature, node)
    if arguments is None:
        return None
    complete = _complete(spelling.operator, arguments)
    if Signature.empty in complete.values():  # the operator needs what this spelling may leave out
        return None
    in_place = spelling.in_place or bool(complete.get("inplace")) or complete.get("out") is not None
    return Call(node, spelling.operator, complete, in_place)


def operator_of(node: object) -> Operator | None:
    """Return the operator that a node calls, if its arguments fit; quick, because arguments are not looked at."""
    if not isinstance(node, fx.Node):
        return None
    if node.op == "call_module":
        name = operator_name_of(module_of(node))
        return None if name is None else operators()[name]
    if swapped_dimensions(node) is not None:
        return operators()["transpose"]
    spelling = _spelling(node)
    return None if spelling is None else spelling.operator


def _spelling(node: fx.Node) -> Spelling | None:
    if node.op == "call_method":
        return method_spellings().get(str(node.target))
    return function_spellings().get(node.target) if node.op == "call_function" else None


def _bind(signature: Signature, node: fx.Node) -> dict[str, object] | None:
    keywords = {name if name in signature.parameters else schema_name(name): v for name, v in node.kwargs.items()}
    try:
        bound = signature.bind(*node.args, **keywords)
    except TypeError:
        return None
    return {name: value for name, value in bound.arguments.items() if name not in _MEANINGLESS}


def _complete(operator: Operator, arguments: Mapping[str, object]) -> dict[str, object]:
    return {name: arguments.get(name, parameter.default) for name, parameter in operator.signature.parameters.items()}


def _read_module(node: fx.Node) -> Call | None:
    module = module_of(node)
    found = owned_arguments(str(node.target), module)
    given = [*node.args, *(value for name, value in node.kwargs.items() if name == "input")]
    if found is None or len(given) != 1 or len(node.args) + len(node.kwargs) != 1:
        return None
    name, owned = found
    arguments = _complete(operators()[name], {"input": given[0], **owned})
    return Call(node, operators()[name], arguments, bool(arguments.get("inplace")), module)
