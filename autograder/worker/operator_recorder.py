"""Record the operators that one call of a function runs, as a graph.

`make_fx` records the same graph, but it calls a thousand functions of Python for each operator, most of them for fake
tensors that nobody here reads. Where each function is observed, that takes milliseconds for an operator.
"""

import operator
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch._ops import OpOverload
from torch.fx._lazy_graph_module import _make_graph_module, _use_lazy_graph_module
from torch.fx.node import map_aggregate
from torch.utils._python_dispatch import TorchDispatchMode, autograd_would_have_decomposed
from torch.utils._pytree import tree_map
from torch.utils.weak import WeakTensorKeyDictionary

ATEN = torch.ops.aten
SIZES = (ATEN.size.default, ATEN.stride.default, ATEN.storage_offset.default)
PLAIN = (Tensor, nn.Parameter)  # another class of tensors decides by itself what its operators are
UNWRITTEN = {ATEN.empty.memory_format: "full", ATEN.empty_like.default: "full_like", ATEN.new_empty.default: "new_full"}
"""Operators whose results may hold anything, with what records them as NaN, so that no result depends on chance."""
CONSTANT_NUMEL = 1  # a larger constant is not computed with: `make_fx` has the same limit


def recorded(function: Callable[..., Any], inputs: Sequence[Tensor]) -> fx.GraphModule:
    """Return a graph of the ATen operators that run when `function` is called once, including writes and views.

    >>> recorded(lambda x: (x + 1).relu_(), [torch.ones(2)]).graph.find_nodes(op="output")[0].args
    (relu_,)
    """
    root, graph = nn.Module(), fx.Graph()
    recorder = _Recorder(root, graph)
    for number, tensor in enumerate(inputs, start=1):
        recorder.note(tensor, graph.placeholder(f"given_{number}"))
    with recorder:
        result = function(*inputs)
    graph.output(tree_map(recorder.node_of, result))
    with _use_lazy_graph_module(True):  # nobody runs its code
        return _make_graph_module(root, graph)


@dataclass
class _Noted:
    """What is known of a tensor."""

    node: fx.Node
    value: Tensor | None = None  # of a small constant, which may become a number of Python
    is_outside: bool = False  # it was there before the call, and is no input


class _Recorder(TorchDispatchMode):
    """Adds a node for each operator, and knows the node of each tensor."""

    def __init__(self, root: nn.Module, graph: fx.Graph) -> None:
        super().__init__()
        self._root, self._graph = root, graph
        # by weak references: of a new tensor with a second owner, PyTorch would return a detached copy
        self._noted: MutableMapping[Tensor, _Noted] = WeakTensorKeyDictionary()
        self._constants = 0

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator, and add its node."""
        kwargs = kwargs or {}
        tensors = _tensors(args, kwargs)
        if not all(type(tensor) in PLAIN for tensor in tensors):
            return NotImplemented
        if func not in SIZES and autograd_would_have_decomposed(func, tensors):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func is ATEN.is_nonzero.default and tensors[0].numel() == 1:
            with self:
                return (tensors[0] != 0).item()
        if torch.Tag.data_dependent_output in func.tags:
            return self._number(func, args, kwargs, tensors)
        return self._recorded(func, args, kwargs, tensors)

    def note(self, tensor: Tensor, node: fx.Node, value: Tensor | None = None) -> None:
        """Note the node of a tensor; a write gives a tensor a new one."""
        self._noted[tensor] = _Noted(node, value)

    def node_of(self, value: Any) -> Any:
        """Return the node of a tensor, which is a constant if no operator gave it; return another value as it is."""
        if not isinstance(value, Tensor):
            return value
        noted = self._noted.get(value)
        if noted is None:
            name = f"_{'param' if isinstance(value, nn.Parameter) else 'tensor'}_constant{self._constants}"
            self._constants += 1
            setattr(self._root, name, value)
            noted = self._noted[value] = _Noted(self._graph.create_node("get_attr", name), is_outside=True)
        return noted.node

    def _number(self, func: OpOverload, args: Any, kwargs: Any, tensors: Sequence[Tensor]) -> Any:
        """Return a number of constants; raise `RuntimeError` for one of other tensors, which the graph would keep."""
        if all(map(self._is_fixed, tensors)):
            return func(*self._of_constants(args), **self._of_constants(kwargs))
        raise RuntimeError(
            f"{func} makes a number of Python of an input, or of a tensor that an operator made. The recorded "
            "graph would keep this number: compute with tensors, and choose between two of them with torch.where."
        )

    def _recorded(self, func: OpOverload, args: Any, kwargs: Any, tensors: Sequence[Tensor]) -> Any:
        if func is ATEN.lift_fresh.default:
            func = ATEN.lift_fresh_copy.default  # or a later write would change the constant
        if full := UNWRITTEN.get(func):
            filled = torch.nan if func(*args, **kwargs).is_floating_point() else 0
            func, args = getattr(ATEN, full).default, (*args, filled)
        nodes: Any = map_aggregate(args, self.node_of)
        named: Any = map_aggregate(kwargs, self.node_of)
        node = self._graph.create_node("call_function", func, nodes, named, func.overloadpacket.__name__)
        value = self._value(func, args, kwargs, tensors)
        result = func(*args, **kwargs)
        if isinstance(result, Tensor):
            self.note(result, node, value if value is not None and value.numel() <= CONSTANT_NUMEL else None)
        elif isinstance(result, list | tuple):
            for place, part in enumerate(result):
                if isinstance(part, Tensor):
                    self.note(part, self._graph.call_function(operator.getitem, (node, place)))
        return result

    def _value(self, func: OpOverload, args: Any, kwargs: Any, tensors: Sequence[Tensor]) -> Tensor | None:
        """Return what an operator gives for small constants, before a write changes them; None if it has others."""
        if func is ATEN.lift_fresh_copy.default:
            return tensors[0].clone()
        is_known = any(self._known(tensor) is not None for tensor in tensors) and all(map(self._is_fixed, tensors))
        if not is_known or torch.Tag.nondeterministic_seeded in func.tags:
            return None
        result = func(*self._of_constants(args), **self._of_constants(kwargs))
        return result if isinstance(result, Tensor) else None

    def _is_fixed(self, tensor: Tensor) -> bool:
        """Tell whether a tensor has the same values in each call; one that nobody noted was made outside."""
        noted = self._noted.get(tensor)
        return noted is None or noted.is_outside or noted.value is not None

    def _known(self, tensor: Tensor) -> Tensor | None:
        noted = self._noted.get(tensor)
        return noted.value if noted else None

    def _of_constants(self, values: Any) -> Any:
        def constant(value: Any) -> Any:
            known = self._known(value) if isinstance(value, Tensor) else None
            return value if known is None else known

        return map_aggregate(values, constant)


def _tensors(*values: Any) -> list[Tensor]:
    """Return all tensors in some arguments; what reads them is written in C, and is not observed."""
    found: list[Tensor] = []

    def collect(value: Any) -> Any:
        if isinstance(value, Tensor):
            found.append(value)
        return value

    for each in values:
        map_aggregate(each, collect)
    return found
