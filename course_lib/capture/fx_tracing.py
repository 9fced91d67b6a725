"""Capture torch.fx graphs: by symbolic tracing on proxies, and by `make_fx` on the operators of one run.

`make_fx` records the operators that reach the dispatcher below autograd. It is private: it belongs to
`torch.fx.experimental` and may move.
"""

import inspect
import keyword
import re
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.fx.experimental.proxy_tensor import make_fx

from course_lib.capture.captured import Captured
from course_lib.capture.failure_causes import explaining, name_of
from course_lib.capture.source_lines import SourceLine, line_of_caller, lines_of_nodes
from course_lib.errors import CaptureError
from course_lib.isolation import imported_numpy
from course_lib.module_classes import reads_its_mode, runs_torchs_code

LeafModule = type[nn.Module] | str
SHOWN_PATHS = 12  # in an error message
# While torch.fx traces, it replaces methods of nn.Module for the whole process, so only one thread may trace.
_TRACING = threading.RLock()
_state = threading.local()  # `tracing`: whether the thread traces


class _Proxy(fx.Proxy):
    __array_ufunc__ = None


class LineTracer(fx.Tracer):
    """Trace a program, keep chosen modules as one node each, and record the source line of each node."""

    def __init__(self, leaf_modules: Sequence[LeafModule]) -> None:
        """Keep modules of the given classes, or at the given paths, as leaves beside those of torch.nn."""
        super().__init__()
        self._leaf_classes = tuple(leaf for leaf in leaf_modules if isinstance(leaf, type))
        self._leaf_paths = frozenset(leaf for leaf in leaf_modules if isinstance(leaf, str))
        self.lines: dict[str, SourceLine] = {}
        self._thread = threading.get_ident()

    def trace(self, root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> fx.Graph:
        """Return the graph of a program; one thread traces at a time."""
        with _TRACING:
            before, _state.tracing = is_tracing(), True
            try:
                return super().trace(root, concrete_args)
            finally:
                _state.tracing = before

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Record the call of a module, or trace into it; a module that another thread runs meanwhile just runs."""
        if threading.get_ident() != self._thread:
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return a proxy of a parameter as torch.fx does; to another thread the parameter itself."""
        if threading.get_ident() != self._thread:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Return whether `m` stays one node, as a layer of PyTorch does.

        So does what a pass of `course_lib.fusion` has made, which computes in each call; a script; and a layer of
        another class that runs PyTorch's code, which would be recorded in one training mode.
        """
        kind: Any = type(m)
        chosen = isinstance(m, self._leaf_classes) or module_qualified_name in self._leaf_paths
        made = kind.__module__.startswith("course_lib.fusion.")
        script = isinstance(m, torch.jit.ScriptModule)
        layer = reads_its_mode(kind) and runs_torchs_code(kind) and not isinstance(m, fx.GraphModule)
        return chosen or made or script or layer or super().is_leaf_module(m, module_qualified_name)

    def create_arg(self, a: Any) -> Any:
        """Return what a node holds as an argument: a number of NumPy becomes one of Python, which code can hold."""
        np = imported_numpy()
        number = a.item() if np is not None and isinstance(a, np.generic) else a
        return super().create_arg(number)

    def proxy(self, node: fx.Node) -> fx.Proxy:
        """Return a stand-in to which NumPy leaves operators such as `np.float64(2) * x`, as it does with tensors."""
        return _Proxy(node, self)

    def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
        """Create a node as torch.fx does, and record its source line."""
        node = super().create_node(*args, **kwargs)
        line = line_of_caller(sys._getframe(1), __file__)
        if line is not None:
            self.lines[node.name] = line
            node.stack_trace = line.as_stack_trace()
        return node


def is_tracing() -> bool:
    """Return whether this thread runs a program on stand-ins, for torch.fx to record it."""
    return getattr(_state, "tracing", False)


def capture_fx(
    model: nn.Module | Callable[..., object],
    leaf_modules: Sequence[LeafModule] = (),
    concrete_args: Mapping[str, object] | None = None,
) -> Captured:
    """Capture by symbolic tracing."""
    graph_module, lines = trace(model, leaf_modules, concrete_args)
    return _captured("fx", "torch.fx.Tracer", graph_module, graph_module, lines)


def trace(
    model: nn.Module | Callable[..., object],
    leaf_modules: Sequence[LeafModule],
    concrete_args: Mapping[str, object] | None,
) -> tuple[fx.GraphModule, dict[str, SourceLine]]:
    """Return the graph of `model` and the source line of each node that has one; raise `CaptureError`."""
    name = name_of(model)
    if isinstance(model, torch.jit.ScriptModule):
        raise CaptureError(
            f"fx got a {name}, whose code is TorchScript; it expects code of Python. Capture the program before it is "
            "scripted or traced, or a model that has the script as a part: it is then one node."
        )
    _check_leaves(model, leaf_modules)
    _check_fixed(model, concrete_args)
    tracer = LineTracer(leaf_modules)
    with explaining("fx", model):
        graph = tracer.trace(model, dict(concrete_args) if concrete_args else None)
    _drop_fixed_inputs(graph, concrete_args or {})
    _drop_early_defaults(graph)
    _check_paths(graph, name)
    _check_arguments(graph, name)
    return fx.GraphModule(tracer.root, graph, class_name=name if name.isidentifier() else "GraphModule"), tracer.lines


def _check_paths(graph: fx.Graph, name: str) -> None:
    """Raise `CaptureError` for a path such as "heads.class", which the code of a graph cannot hold."""
    for node in graph.nodes:
        words = str(node.target).split(".") if node.op in ("call_module", "get_attr") else []
        for word in filter(keyword.iskeyword, words):
            raise CaptureError(
                f"fx captured {name}, and cannot write {node.target!r} as code, since {word!r} is a keyword of Python. "
                "Give this part of the model another name, such as one with an underscore at its end."
            )


def _check_arguments(graph: fx.Graph, name: str) -> None:
    """Raise `CaptureError` for an argument such as "torch" or "inf", if the code of the graph needs the name itself.

    torch.fx keeps the names of arguments, and gives the node another name if the code may need this one.
    """
    for node in graph.find_nodes(op="placeholder"):
        given = str(node.target).lstrip("*")
        if given == "self" or (given != node.name and _is_in_code(graph, node, given)):
            raise CaptureError(
                f"fx captured {name}, and cannot write its argument {given!r}, since the code of its graph means "
                f"something else by this name. Give the argument another name, such as {given}_."
            )


def _is_in_code(graph: fx.Graph, node: fx.Node, word: str) -> bool:
    """Return whether the code of a graph has a word, apart from the argument of this name."""
    target, node.target = node.target, f"{word}_"
    try:
        lines = graph.python_code("self").src.splitlines()
    finally:
        node.target = target
    body = [line.partition("#")[0] for line in lines if "def forward(" not in line]
    return any(re.search(rf"(?<![\w.'\"]){word}\b(?!\s*=[^=])", line) for line in body)


def _check_leaves(model: nn.Module | Callable[..., object], leaf_modules: Sequence[LeafModule]) -> None:
    if isinstance(leaf_modules, (str, type)) or not isinstance(leaf_modules, Collection):
        shown = leaf_modules.__name__ if isinstance(leaf_modules, type) else repr(leaf_modules)
        such_as = shown if isinstance(leaf_modules, (str, type)) else "torch.nn.Linear"
        raise CaptureError(f"capture got leaf_modules={shown:.80}; it expects several, such as ({such_as:.80},).")
    paths = [path for path, _ in model.named_modules(remove_duplicate=False)] if isinstance(model, nn.Module) else []
    for leaf in leaf_modules:
        if not isinstance(leaf, (str, type)):
            raise CaptureError(
                f"capture got a leaf module of type {type(leaf).__name__}; it expects a class, or the path of a module."
            )
        if isinstance(leaf, str) and leaf not in paths:
            shown = ", ".join(map(repr, paths[1 : SHOWN_PATHS + 1])) or "none"
            left_out = max(len(paths) - 1 - SHOWN_PATHS, 0)
            raise CaptureError(
                f"capture got leaf_modules with {leaf!r}, and {name_of(model)} has no module at this path; it has "
                f"{shown}{f' and {left_out} more' if left_out else ''}."
            )


def _check_fixed(model: nn.Module | Callable[..., object], concrete_args: Mapping[str, object] | None) -> None:
    if concrete_args is None:
        return
    try:
        parameters = inspect.signature(model.forward if isinstance(model, nn.Module) else model).parameters
    except (TypeError, ValueError):  # no signature, as builtin functions have none
        return
    unknown = [name for name in concrete_args if name not in parameters]
    if unknown and not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        raise CaptureError(
            f"capture got concrete_args with {unknown[0]!r}, and {name_of(model)} has no argument of this name; it has "
            f"{', '.join(map(repr, parameters)) or 'none'}."
        )


def _drop_fixed_inputs(graph: fx.Graph, concrete_args: Mapping[str, object]) -> None:
    """Remove the inputs that were fixed, with the assertions that torch.fx adds about them.

    Their values are constants of the graph now, so the inputs have no use.
    """
    fixed = {f"{name}_1" for name, value in concrete_args.items() if _is_plain(value)}
    for node in graph.find_nodes(op="placeholder"):
        if node.target in fixed:
            _erase_with_users(graph, node)


def _drop_early_defaults(graph: fx.Graph) -> None:
    """Require the inputs before one that is required: an argument by name only is an input by place of a graph."""
    places = [node for node in graph.find_nodes(op="placeholder") if not str(node.target).startswith("*")]
    required = [number for number, node in enumerate(places) if not node.args]
    for node in places[: max(required, default=0)]:
        node.args = ()


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, torch.dtype))


def _erase_with_users(graph: fx.Graph, node: fx.Node) -> None:
    for user in list(node.users):
        _erase_with_users(graph, user)
    graph.erase_node(node)


def capture_make_fx(
    model: nn.Module | Callable[..., Any], inputs: tuple[Any, ...], keyword_inputs: Mapping[str, Any]
) -> Captured:
    """Record ATen operators with the sizes of these inputs as constants; parameters become attributes of the graph.

    The graph takes keyword inputs by position too, in the order in which they were given.
    """
    names, count = tuple(keyword_inputs), len(inputs)

    def by_place(*given: Any) -> Any:
        return model(*given[:count], **dict(zip(names, given[count:], strict=True)))

    def run(*given: Any, **named: Any) -> Any:
        if set(named) != set(names):
            raise TypeError(f"recorded with inputs named {', '.join(names)}, called with {', '.join(named) or 'none'}")
        return graph_module(*given, *(named[name] for name in names))

    with explaining("make_fx", model):
        program = by_place if names else model
        graph_module = make_fx(program, record_stack_traces=True)(*inputs, *keyword_inputs.values())
    by, lines = "torch.fx.experimental.proxy_tensor.make_fx", lines_of_nodes([graph_module])
    return _captured("make_fx", by, graph_module, run if names else graph_module, lines)


def _captured(
    mode: str, by: str, graph_module: fx.GraphModule, run: Callable[..., Any], lines: Mapping[str, SourceLine]
) -> Captured:
    """Describe one graph module."""
    return Captured(
        mode=mode,
        captured_by=by,
        code=graph_module.code,
        ir=str(graph_module.graph),
        run=run,
        graphs={"graph": graph_module},
        module=graph_module,
        lines=lines,
    )
