"""A fusion as a program writes it that was asked for one: it looks right, works on the example, and has three defects.

It is for reading: notebook 17 asks for programs that it breaks. Nothing else uses it.
"""

import copy
import operator

import torch
from torch import fx
from torch.nn import functional as F

import course_lib.kernels  # noqa: F401  # registers the operator

ADDITIONS = (operator.add, torch.add)


def fuse_add_norm(gm: fx.GraphModule) -> fx.GraphModule:
    """Return a copy in which each `F.layer_norm` of a sum is one call of `course_lib::residual_layer_norm`.

    Sums of two tensors are fused, if the norm has a weight and a bias. All else stays as it is.
    """
    gm = copy.deepcopy(gm)
    for norm in gm.graph.find_nodes(op="call_function", target=F.layer_norm):
        total, options = norm.args[0], norm.kwargs
        if total.target not in ADDITIONS or not all(isinstance(term, fx.Node) for term in total.args):
            continue
        if options.get("weight") is None or options.get("bias") is None:
            continue
        with gm.graph.inserting_before(norm):
            arguments = (*total.args, options["weight"], options["bias"], options["eps"])
            fused = gm.graph.call_function(torch.ops.course_lib.residual_layer_norm.default, arguments)
        norm.replace_all_uses_with(fused)
        gm.graph.erase_node(norm)
        total.replace_all_uses_with(fused)  # nobody may keep what is erased
        gm.graph.erase_node(total)
    gm.graph.lint()
    gm.recompile()
    return gm
