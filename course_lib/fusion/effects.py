"""What a node does besides giving a result, and whether it may be left out, moved or computed once for two."""

import builtins
import math
from collections.abc import Iterator

import torch
from torch import fx

from course_lib.fusion.calls import read_call
from course_lib.fusion.checked import CheckedFusion
from course_lib.fusion.constants import Constant
from course_lib.fusion.mutation import mutates
from course_lib.fusion.owned import module_of
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


def is_random(node: fx.Node) -> bool:
    """Return whether running `node` may advance the random state.

    A dropout that is written with p=0 or without training draws nothing; one whose module could be switched may.
    """
    call = read_call(node)
    if call is not None and call.operator.name == "dropout":
        return not (call["training"] is False or (call["p"] == 0 and not isinstance(call["p"], bool)))
    if node.op == "call_module":
        if isinstance(module := module_of(node), CheckedFusion):
            return any(is_random(inner) for inner in module.written.graph.nodes)
        return type(module).__name__.startswith(_RANDOM_MODULES) or "Dropout" in type(module).__name__
    name = _name(node).rstrip("_")
    return name in _RANDOM or "dropout" in name or (node.op == "call_function" and _is_seeded(node.target))


def switches_regime(node: fx.Node) -> bool:
    """Return whether `node` changes how later nodes are computed or recorded, such as the begin of autocast."""
    return node.op == "call_function" and _name(node) in _SWITCHES


def is_pure(node: fx.Node) -> bool:
    """Return whether `node` only computes its result from its operands: leaving it out changes nothing else.

    Not pure are mutations, random numbers, assertions, switches, modules with hooks or from outside torch.nn, and
    Python functions that are not PyTorch's, such as `print`.
    """
    if node.op == "get_attr":
        return True
    if node.op not in ("call_function", "call_method", "call_module"):
        return False
    if mutates(node) or is_random(node) or switches_regime(node) or _name(node).startswith(_CHECKING):
        return False
    if node.op == "call_module":
        module = module_of(node)
        return isinstance(module, Constant) or (_is_of_torch(module) and not _has_effects(module))
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
    """Return whether the result, where it is known, is what operators give: a call for nothing has an effect."""
    return "val" not in node.meta or isinstance(
        node.meta["val"],
        (torch.Tensor, bool, int, float, complex, str, tuple, list, dict, torch.dtype, torch.device, torch.SymInt),
    )


def _is_of_torch(module: torch.nn.Module) -> bool:
    return type(module).__module__.startswith("torch.nn.")


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


def _is_seeded(target: object) -> bool:
    overloads = [target] if isinstance(target, torch._ops.OpOverload) else []
    if isinstance(target, torch._ops.OpOverloadPacket):
        overloads = [getattr(target, overload) for overload in target.overloads()]
    return any(torch.Tag.nondeterministic_seeded in overload.tags for overload in overloads)


def _is_known(target: object) -> bool:
    """Return whether a function is one of PyTorch's or Python's operators, and no function of the user's."""
    if isinstance(target, torch._ops.OpOverload):
        return not target._schema.is_mutable
    if isinstance(target, torch._ops.OpOverloadPacket):
        return not any(getattr(target, overload)._schema.is_mutable for overload in target.overloads())
    if target in (builtins.getattr, math.sqrt):
        return True
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", None) or ""
    functional = torch.nn.functional
    return module == "_operator" or getattr(torch, name, None) is target or getattr(functional, name, None) is target
