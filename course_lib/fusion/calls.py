"""Read which operator a node calls, whatever its spelling, and every argument by its name in the schema."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Signature
from operator import attrgetter
from typing import Any

import torch
from torch import fx, nn
from torch.nn.utils.parametrize import is_parametrized

from course_lib.errors import FusionError
from course_lib.fusion.operators import Operator, Spelling, function_spellings, method_spellings, operators, schema_name
from course_lib.module_classes import runs_torchs_code, torchs_class

# Parameters that never change what is computed.
_MEANINGLESS = frozenset({"_stacklevel", "cudnn_enable", "cudnn_enabled"})
_PERMUTE = (torch.permute, torch.ops.aten.permute.default)
_EINSUM = (torch.einsum, torch.ops.aten.einsum.default)

# Class of module -> operator, and parameter of the operator -> attribute of the module.
MODULES: Mapping[type[nn.Module], tuple[str, str]] = {
    nn.GELU: ("gelu", "approximate"),
    nn.ReLU: ("relu", "inplace"),
    nn.SiLU: ("silu", "inplace"),
    nn.Sigmoid: ("sigmoid", ""),
    nn.Tanh: ("tanh", ""),
    nn.Dropout: ("dropout", "p training inplace"),
    nn.Softmax: ("softmax", "dim"),
    nn.LayerNorm: ("layer_norm", "normalized_shape weight bias eps"),
    nn.Linear: ("linear", "weight bias"),
    nn.Conv1d: ("conv1d", "weight bias stride padding dilation groups"),
    nn.Conv2d: ("conv2d", "weight bias stride padding dilation groups"),
    nn.BatchNorm1d: ("batch_norm", "running_mean running_var weight bias training momentum eps"),
    nn.BatchNorm2d: ("batch_norm", "running_mean running_var weight bias training momentum eps"),
}
_READ_LATE = frozenset("weight bias running_mean running_var training".split())  # noqa: SIM905  # may change later


@dataclass(frozen=True)
class ModuleAttribute:
    """An attribute that a module of the graph holds, such as `norm.weight`; it is read when the graph runs."""

    path: str

    def __str__(self) -> str:
        return self.path


Operand = fx.Node | ModuleAttribute  # what a call reads when the graph runs


@dataclass(frozen=True, eq=False)
class Call:
    """One node as a call of an operator."""

    node: fx.Node
    operator: Operator
    arguments: Mapping[str, object]  # all of them, in schema order; omitted arguments have their defaults
    in_place: bool = False  # whether the result is written into the first operand, or into `out`
    module: nn.Module | None = None  # the module that was called, if it was one

    @property
    def exact_module(self) -> bool:
        """Return False if the called module is of a subclass with code of its own, which might compute otherwise."""
        kind: Any = type(self.module)
        return self.module is None or (torchs_class(kind) in MODULES and runs_torchs_code(kind))

    def __getitem__(self, parameter: str) -> object:
        return self.arguments[parameter]


def read_call(node: object) -> Call | None:
    """Return the call that a node makes, or None if it calls no operator that the table knows.

        >>> graph = fx.symbolic_trace(lambda x, y: x.add(other=y)).graph
        >>> call = read_call(list(graph.nodes)[2])
        >>> call.operator, dict(call.arguments)
        (add, {'input': x, 'other': y, 'alpha': 1, 'out': None})

    The result is also None for a call that does not fit the operator's parameters: `torch.add(x, 2, y)` has a different
    meaning in old programs.
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
    if Signature.empty in complete.values():  # this spelling may omit an argument that the operator requires
        return None
    in_place = spelling.in_place or bool(complete.get("inplace")) or complete.get("out") is not None
    return Call(node, spelling.operator, complete, in_place)


def operator_of(node: object) -> Operator | None:
    """Return the operator that a node calls; this is faster than `read_call`, because arguments are not read."""
    if not isinstance(node, fx.Node):
        return None
    if node.op == "call_module":
        known = _known_module(module_of(node))
        return None if known is None else operators()[known[0]]
    if swapped_dimensions(node) is not None:
        return operators()["transpose"]
    spelling = _spelling(node)
    return None if spelling is None else spelling.operator


def module_of(node: fx.Node) -> nn.Module:
    """Return the module that a node calls."""
    owner = node.graph.owning_module
    if owner is None:
        raise FusionError(f"The graph of {node} belongs to no GraphModule, so its module {node.target} is unknown.")
    module: nn.Module = attrgetter(str(node.target))(owner)
    return module


def swapped_dimensions(node: fx.Node) -> tuple[int, int] | None:
    """Return the two dimensions that `x.mT` or `x.permute(...)` exchanges; None for other nodes.

    Negative dimensions are counted from the last.

    >>> graph = fx.symbolic_trace(lambda x: x.permute(0, 2, 1)).graph
    >>> swapped_dimensions(list(graph.nodes)[1])
    (1, 2)
    """
    if not node.all_input_nodes:  # such as a permutation of a number
        return None
    if node.op == "call_function" and node.target is getattr:
        return (-2, -1) if node.args[1:] == ("mT",) else None
    if node.op == "call_function" and node.target is torch.ops.aten.mT.default:
        return (-2, -1)
    if (node.op, node.target) != ("call_method", "permute") and node.target not in _PERMUTE:
        return None
    given = node.args[1:] or tuple(value for name, value in node.kwargs.items() if name == "dims")
    dims = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    if not all(type(dim) is int for dim in dims):
        return None
    rank = len(dims)
    dims = [dim % rank for dim in dims]  # type: ignore[operator]  # integers, as just seen
    moved = [place for place, dim in enumerate(dims) if dim != place]
    return (moved[0], moved[1]) if len(moved) == 2 else None


def _spelling(node: fx.Node) -> Spelling | None:
    if node.op == "call_method":
        return method_spellings().get(str(node.target))
    return function_spellings().get(node.target) if node.op == "call_function" else None


def _bind(signature: Signature, node: fx.Node) -> dict[str, object] | None:
    keywords = {name if name in signature.parameters else schema_name(name): v for name, v in node.kwargs.items()}
    args = node.args
    if node.target in _EINSUM and len(args) == 2 and isinstance(args[1], (tuple, list)):
        args = (args[0], *args[1])  # the operands may come in a list
    try:
        bound = signature.bind(*args, **keywords)
    except TypeError:
        return None
    if bound.arguments.get("half_to_float"):  # then softmax gives another dtype
        return None
    return {name: value for name, value in bound.arguments.items() if name not in _MEANINGLESS}


def _complete(operator: Operator, arguments: Mapping[str, object]) -> dict[str, object]:
    return {name: arguments.get(name, parameter.default) for name, parameter in operator.signature.parameters.items()}


def _read_module(node: fx.Node) -> Call | None:
    """Return the call that a module makes; a subclass is read as its base class, and a guard refuses it."""
    module = module_of(node)
    known = _known_module(module)
    given = [*node.args, *(value for name, value in node.kwargs.items() if name == "input")]
    if known is None or len(given) != 1 or len(node.args) + len(node.kwargs) != 1:
        return None
    name, attributes = known
    held = {attribute: _held(str(node.target), module, attribute) for attribute in attributes}
    arguments = _complete(operators()[name], {"input": given[0], **held})
    return Call(node, operators()[name], arguments, bool(arguments.get("inplace")), module)


def _held(path: str, module: nn.Module, attribute: str) -> object:
    if is_parametrized(module, attribute):  # reading it would compute it, and spectral_norm would count that
        return ModuleAttribute(f"{path}.{attribute}")
    value = getattr(module, attribute)
    return ModuleAttribute(f"{path}.{attribute}") if attribute in _READ_LATE and value is not None else value


def _known_module(module: nn.Module) -> tuple[str, tuple[str, ...]] | None:
    """Return the name of the operator that a module calls, and the attributes that are its arguments; or None."""
    if getattr(module, "padding_mode", "zeros") != "zeros":  # such a convolution pads first, which is another operator
        return None
    kind: Any = type(module)
    return _known_class(kind)


@functools.cache
def _known_class(kind: Any) -> tuple[str, tuple[str, ...]] | None:
    found = next((entry for cls, entry in MODULES.items() if issubclass(kind, cls)), None)
    return None if found is None else (found[0], tuple(found[1].split()))
