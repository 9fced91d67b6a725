"""Write every operator in one spelling, so that a reader, and a pass of another library, needs to know only one.

`x.add(y)`, `torch.add(x, y)` and `aten.add.Tensor(x, y)` become `x + y`; `nn.GELU()` becomes `F.gelu`; a number comes
after a tensor, where the order does not matter. Our own passes do not need this: they read all spellings.

The pass does not rewrite in-place operators, modules with parameters, hooks or a training flag, subclasses of modules,
or arithmetic without tensors. Two tensors are never exchanged: the strides of a sum follow its first operand.
"""

from collections.abc import Callable

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.result import Rejected
from course_lib.fusion.storage import run_node
from course_lib.fusion.surgery import erase
from course_lib.module_hooks import has_hooks

_PARAMETER_FREE = (nn.GELU, nn.ReLU, nn.SiLU, nn.Sigmoid, nn.Tanh, nn.Softmax)


class Normalise(GraphPass):
    """Rewrite all equivalent calls of an operator to the same form; runs only when requested by name."""

    name = "normalise"
    by_default = False

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Rewrite each call that is spelt in another way; count them."""
        rewritten = 0
        for node in list(gm.graph.nodes):  # read one by one: a rewritten node is an argument of later ones
            call = read_call(node)
            if call is not None and _may_be_rewritten(call):
                rewritten += _rewrite(call)
        return rewritten, []


def _may_be_rewritten(call: Call) -> bool:
    """Return whether the call may be written in another spelling."""
    if "softmax" in call.operator.name and call["dim"] is None:
        return False  # PyTorch chooses the dimension by the rank
    if call.in_place or not isinstance(call.node.meta.get("val"), torch.Tensor):
        return False
    if call.module is not None:
        return type(call.module) in _PARAMETER_FREE and not has_hooks(call.module)
    return True


def _rewrite(call: Call) -> bool:
    """Rewrite this call in the standard spelling; return whether that changed it and gives the same kind of tensor."""
    target, args, kwargs = one_spelling(call)
    node = call.node
    if (node.op, node.target, node.args, node.kwargs) == ("call_function", target, args, kwargs):
        return False
    with node.graph.inserting_before(node):
        new = node.graph.call_function(target, args, kwargs)  # type: ignore[arg-type]  # arguments of another node
    if not _gives_the_same(new, node):
        node.graph.erase_node(new)
        return False
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    erase((node,))
    return True


def _gives_the_same(new: fx.Node, node: fx.Node) -> bool:
    """Return whether a new call takes its arguments, and gives a tensor of the same shape, strides and type."""
    old = node.meta["val"]
    if not isinstance(old, FakeTensor) or not all("val" in operand.meta for operand in new.all_input_nodes):
        return True  # run on its own, this pass knows too little to tell
    try:
        with old.fake_mode, torch.no_grad():
            found = run_node(new, {})
    except Exception:  # a spelling that does not take such arguments
        return False
    if not isinstance(found, torch.Tensor):
        return False
    return (found.shape, found.stride(), found.dtype) == (old.shape, old.stride(), old.dtype)


def one_spelling(call: Call) -> tuple[Callable[..., object], tuple[object, ...], dict[str, object]]:
    """Return the function, the required arguments, and by name the other arguments that are not defaults."""
    parameters = call.operator.signature.parameters
    required = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
    given = {name: call[name] for name in parameters if name not in required and _differs(call, name)}
    args = [call[name] for name in required]
    if call.operator.commutes and not isinstance(args[0], fx.Node) and "alpha" not in given:  # it scales the second
        args.reverse()
    if "dim" in parameters and "dim" not in required and set(given) - {"dtype"}:
        given = {"dim": call["dim"], **given}  # PyTorch takes `keepdim` only where `dim` is written
    return (call.operator.full if given else call.operator.short), tuple(args), given


def _differs(call: Call, name: str) -> bool:
    default = call.operator.signature.parameters[name].default
    value = call[name]
    if name == "alpha":  # 1 and 1.0 both mean no factor
        return isinstance(value, bool) or value != default
    return type(value) is not type(default) or value != default
