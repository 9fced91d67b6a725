"""A pass that fuses bias and GELU in graphs of ATen operators, by a pattern that fits too much.

It is a worked example of a pattern without a check: `extra_check` decides which matches are rewritten.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import fx

import course_lib.kernels  # noqa: F401 - registers the operator
from course_lib.inductor_passes.matcher_graphs import with_fake_values

if TYPE_CHECKING:  # importing Inductor takes seconds
    from torch._inductor.pattern_matcher import CallFunction, Match

ADD, MUL, ERF = torch.ops.aten.add.Tensor, torch.ops.aten.mul.Tensor, torch.ops.aten.erf.default


def loose_pattern() -> "CallFunction":
    """Return the pattern (h * half) * (erf(h * scale) + one) with h = x + bias.

    It fits whatever the three numbers are, whoever else reads a node in the middle, and whatever x and bias are.
    """
    from torch._inductor.pattern_matcher import MULTIPLE, CallFunction, KeywordArg

    total = CallFunction(ADD, KeywordArg("x"), KeywordArg("bias"), _users=MULTIPLE)
    halved = CallFunction(MUL, total, KeywordArg("half"), _users=MULTIPLE)
    scaled = CallFunction(MUL, total, KeywordArg("scale"), _users=MULTIPLE)
    error = CallFunction(ERF, scaled, _users=MULTIPLE)
    raised = CallFunction(ADD, error, KeywordArg("one"), _users=MULTIPLE)
    return CallFunction(MUL, halved, raised, _users=MULTIPLE)


def fuse_loosely(graph_module: fx.GraphModule, extra_check: "Callable[[Match], object]") -> int:
    """Rewrite each match that `extra_check` accepts to `torch.ops.course_lib.bias_gelu`; return how many there were.

    The graph is changed. Inputs need their `tensor_meta`, or a value in `meta["val"]` at each node.
    """
    from torch._inductor.pattern_matcher import PatternMatcherPass, register_graph_pattern

    if any("val" not in node.meta for node in graph_module.graph.nodes if node.op != "output"):
        with_fake_values(graph_module)
    patterns = PatternMatcherPass()

    @register_graph_pattern(loose_pattern(), extra_check=lambda match: bool(extra_check(match)), pass_dict=patterns)
    def rewrite(match: "Match", x: fx.Node, bias: fx.Node, **numbers: object) -> None:
        last = match.output_node()
        with match.graph.inserting_before(last):
            fused = match.graph.call_function(torch.ops.course_lib.bias_gelu.default, (x, bias))
        fused.meta.update(last.meta)
        last.replace_all_uses_with(fused)
        match.erase_nodes()

    count: int = patterns.apply(graph_module)
    graph_module.graph.lint()
    graph_module.recompile()
    return count
