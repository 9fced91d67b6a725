"""The effects of a node besides its result: in-place changes, random numbers, switches, and others.

A graph shows which nodes read a value, but not what else a node does. A pass that erases, moves or merges nodes must
check these effects first.
"""

import builtins
import functools
import inspect
import math
import operator
from collections.abc import Iterator

import torch
from torch import fx

from course_lib.fusion.calls import module_of, read_call
from course_lib.fusion.inserted_modules import CheckedFusion, Constant
from course_lib.graph.hooks import has_hooks

# Functions of Python and torch that switch how everything after them is computed or recorded.
_SWITCHES = ("_enter_autocast", "_exit_autocast", "set_grad_enabled", "_set_grad_enabled", "inference_mode",
             "_enter_inference_mode", "_exit_inference_mode", "manual_seed", "set_default_dtype")  # fmt: skip
# Operators and methods that draw from the random state, by the last part of their name.
_RANDOM = frozenset(
    """
    dropout alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d feature_dropout rand rand_like randn
    randn_like randint randint_like randperm bernoulli multinomial normal poisson rrelu gumbel_softmax
    fractional_max_pool2d fractional_max_pool3d native_dropout scaled_dot_product_attention
    multi_head_attention_forward uniform exponential cauchy geometric log_normal random rnn_tanh rnn_relu lstm gru
    """.split()  # noqa: SIM905  # a list of so many names reads best as a block
)
_CHECKING = ("assert", "_assert", "_check", "sym_constrain", "GuardsFn")
_SETTING = ("set_", "use_", "save", "seed", "manual_seed", "__set", "__del")
_METHODS_WITH_EFFECTS = frozenset({"backward", "retain_grad", "register_hook", "register_post_accumulate_grad_hook"})
_UNINITIALISED = ("empty", "new_empty")
_RANDOM_MODULES = ("Dropout", "RReLU", "RNN", "LSTM", "GRU", "MultiheadAttention", "FractionalMaxPool", "Transformer")
_INPLACE_OPERATORS = frozenset({"setitem", "delitem"})
_INPLACE_METHODS = frozenset(
    """
    __setitem__ __delitem__ __iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__
    __ixor__
    """.split()  # noqa: SIM905  # a list of so many names reads best as a block
)


def mutates(node: fx.Node) -> bool:
    """Return whether running `node` may change a tensor that another node holds.

    It recognises methods and functions whose name ends in an underscore, `+=` and similar operators, item assignment,
    `out=`, `inplace=True` in any spelling, operators with a mutable schema, and modules with `inplace` set. A module
    from outside torch.nn may do anything, so it counts as one that changes its inputs.
    """
    if node.kwargs.get("out") is not None:
        return True
    if node.op == "call_method":
        name = str(node.target)
        return name in _INPLACE_METHODS or (name.endswith("_") and not name.endswith("__"))
    if node.op == "call_module":
        return _is_foreign(node) or bool(getattr(module_of(node), "inplace", False))
    return node.op == "call_function" and _function_mutates(node)


def changed_operands(node: fx.Node) -> list[fx.Node]:
    """Return the operands that a mutating node may write to."""
    out = node.kwargs.get("out")
    if isinstance(out, fx.Node):
        return [out]
    known = node.op != "call_module" or not _is_foreign(node)
    return [node.args[0]] if known and node.args and isinstance(node.args[0], fx.Node) else node.all_input_nodes


def is_random(node: fx.Node) -> bool:
    """Return whether running `node` may advance the random state.

    Dropout with a literal p=0 or training=False draws nothing. Dropout of a module may draw, because its mode can
    change.
    """
    call = read_call(node)
    if call is not None and call.operator.name == "dropout":
        return not (call["training"] is False or (call["p"] == 0 and not isinstance(call["p"], bool)))
    if node.op == "call_module":
        if isinstance(module := module_of(node), CheckedFusion):
            return any(is_random(inner) for inner in module.written.graph.nodes)
        return type(module).__name__.startswith(_RANDOM_MODULES) or "Dropout" in type(module).__name__
    name = _name(node).rstrip("_")
    overloads = _overloads(node.target) if node.op == "call_function" else []
    seeded = any(torch.Tag.nondeterministic_seeded in overload.tags for overload in overloads)
    return name in _RANDOM or "dropout" in name or seeded


def switches_regime(node: fx.Node) -> bool:
    """Return whether `node` changes how later nodes are computed or recorded, such as the start of autocast."""
    return node.op == "call_function" and _name(node) in _SWITCHES


def is_pure(node: fx.Node) -> bool:
    """Return whether `node` only computes its result from its operands, and has no other effect.

    These are not pure: mutations, random numbers, assertions, switches, modules with hooks or from outside torch.nn,
    and Python functions from outside PyTorch, such as `print`.
    """
    if node.op == "get_attr":
        return True
    if node.op not in ("call_function", "call_method", "call_module"):
        return False
    if mutates(node) or is_random(node) or switches_regime(node) or _name(node).startswith(_CHECKING):
        return False
    if node.op == "call_module":
        module = module_of(node)
        return isinstance(module, Constant) or (
            type(module).__module__.startswith("torch.nn.") and not _has_effects(module)
        )
    if not _gives_data(node) or _name(node).startswith(_SETTING):
        return False
    if node.op == "call_method":
        return hasattr(torch.Tensor, _name(node)) and _name(node) not in _METHODS_WITH_EFFECTS
    return _is_known(node.target)


def is_repeatable(node: fx.Node) -> bool:
    """Return whether `node` gives the same result each time it is run on the same operands: pure and initialised."""
    return is_pure(node) and not _name(node).startswith(_UNINITIALISED)


def between(first: fx.Node, last: fx.Node) -> Iterator[fx.Node]:
    """Yield the nodes after `first` and before `last`, in graph order."""
    node = first.next
    while node is not last and node.op != "root":
        yield node
        node = node.next


def _gives_data(node: fx.Node) -> bool:
    """Return False if the result is known and is not data, because a call that returns no data has an effect."""
    return "val" not in node.meta or isinstance(
        node.meta["val"],
        (torch.Tensor, bool, int, float, complex, str, tuple, list, dict, torch.dtype, torch.device, torch.SymInt),
    )


def _has_effects(module: torch.nn.Module) -> bool:
    """Return whether a module has hooks, or keeps statistics while training."""
    keeps_statistics = isinstance(module, torch.nn.modules.batchnorm._NormBase) and module.track_running_stats
    return has_hooks(module) or keeps_statistics or any(True for _ in module.children())


def _name(node: fx.Node) -> str:
    if node.op == "call_method":
        return str(node.target)
    if node.op == "call_module":
        return type(module_of(node)).__name__
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return str(target._schema.name.rpartition("::")[2])
    return str(getattr(target, "__name__", target))


def _overloads(target: object) -> list[torch._ops.OpOverload]:
    """Return the overloads of an operator of the dispatcher, or the one that is called; none of any other function."""
    if isinstance(target, torch._ops.OpOverloadPacket):
        return [getattr(target, overload) for overload in target.overloads()]
    return [target] if isinstance(target, torch._ops.OpOverload) else []


def _is_known(target: object) -> bool:
    """Return whether a function is an operator of PyTorch or Python, and not a function of the user."""
    if overloads := _overloads(target):
        return not any(overload._schema.is_mutable for overload in overloads)
    if target in (builtins.getattr, math.sqrt):
        return True
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", None) or ""
    functional = torch.nn.functional
    return module == "_operator" or getattr(torch, name, None) is target or getattr(functional, name, None) is target


def _is_foreign(node: fx.Node) -> bool:
    # torch.export's guards only look at the inputs, and our own modules wrap operators that change nothing.
    return not type(module_of(node)).__module__.startswith(("torch.nn.", "torch.export.", "course_lib.fusion."))


def _function_mutates(node: fx.Node) -> bool:
    target = node.target
    if overloads := _overloads(target):
        return any(overload._schema.is_mutable for overload in overloads)
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", "")
    if module == "_operator":
        # `iadd` is the in-place `add`, and `iand` that of `and_`; `index` and `invert` only begin with the same letter.
        plain = name.removeprefix("i")
        in_place = plain != name and (hasattr(operator, plain) or hasattr(operator, f"{plain}_"))
        return in_place or name in _INPLACE_OPERATORS
    return (name.endswith("_") and not name.endswith("__")) or _given(node, "inplace")


def _given(node: fx.Node, parameter: str) -> bool:
    """Return whether a call gives `parameter` a value other than False, by name or by position."""
    position = _position(node.target, parameter)
    if position is not None and position < len(node.args):
        return bool(node.args[position])
    return bool(node.kwargs.get(parameter, False))


@functools.cache
def _position(function: object, parameter: str) -> int | None:
    """Return the position of `parameter` in a function's signature, or None if it is unknown."""
    try:
        names = list(inspect.signature(function).parameters)  # type: ignore[arg-type]  # what is no function raises
    except (TypeError, ValueError):  # a builtin without a signature takes such a parameter only by name
        return None
    return names.index(parameter) if parameter in names else None
