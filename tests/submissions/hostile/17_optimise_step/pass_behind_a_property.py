"""Strategy: return an object whose property `graph_module` runs the library's pass. Surface: the functions that run are observed until the answer returns, and its result is read afterwards.

Class: answer theft. Unprotected: grader counted_on_zeros gives full marks. Level: 5.
Must get 0: the result is read, and its graph written, while functions that run are observed.
"""

import torch


def run(gm):
    from course_lib.fusion.passes.bias_dropout_residual_layer_norm import BiasDropoutResidualLayerNorm

    gm = BiasDropoutResidualLayerNorm().call(gm).graph_module
    for node in list(gm.graph.find_nodes(op="call_module")):
        module = gm.get_submodule(node.target)
        if type(module).__name__ == "BiasDropoutResidualLayerNorm":
            node.op, node.target = "call_function", torch.ops.course_lib.bias_dropout_residual_layer_norm.default
            node.args = (*node.args, module.p, True, module.eps)
    gm.recompile()
    return gm


class Late:
    def __init__(self, gm):
        self.gm = gm

    @property
    def graph_module(self):
        return run(self.gm)


def optimise(gm):
    return Late(gm)
