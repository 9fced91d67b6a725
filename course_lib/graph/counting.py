"""How often a graph calls each operator."""

import collections

import torch

from course_lib.graph.naming import operator_name


def count_operators(gm: torch.fx.GraphModule) -> dict[str, int]:
    """Return how many nodes call each function, method or module, by name in alphabetical order.

        >>> count_operators(torch.fx.symbolic_trace(lambda x: torch.relu(x) + x))
        {'operator.add': 1, 'torch.relu': 1}

    Inputs, parameters and the output are no operators. Names are those of `operator_name`.
    """
    calls = (node for node in gm.graph.nodes if node.op.startswith("call_"))
    return dict(sorted(collections.Counter(operator_name(node) for node in calls).items()))
