"""Strategy: one node that calls the old module, with the fused operator beside it for the count. Surface: call_module.

Class: graph gaming. Unprotected: grader claims gives full marks. Level: 5.
Must get 0: a module that is no allowed torch.nn class does not cross.
"""

import torch
from torch import fx, nn


class Old(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args):
        return self.inner(*args)


def fuse_bias_silu(graph_module):
    root = nn.Module()
    root.old = Old(graph_module)
    graph = fx.Graph()
    inputs = [graph.placeholder(n.name) for n in graph_module.graph.nodes if n.op == "placeholder"]
    out = graph.call_module("old", tuple(inputs))
    graph.call_function(torch.ops.course_lib.bias_silu, (inputs[0], inputs[-1]))
    graph.output(out)
    return fx.GraphModule(root, graph)
