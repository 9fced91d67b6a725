"""Strategy: hand in the programs as they were, and let PyTorch take the writes out and then decompose what it put in their place. Surface: torch.func.functionalize and torch._decomp in the worker.

Class: answer theft. Unprotected: grader underscored gives full marks. Level: 5.
Must get at most 1.6: a graph that makes numbers of rows or columns, from which PyTorch builds its masks, is refused; one program has no view.
"""

import torch
from torch._decomp import get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx

# The file tests/submissions/hostile/08_functionalise/programs_as_they_were.txt of this repository stands here.

made_graphs = {}


def functional():
    a = torch.ops.aten
    table = get_decompositions([a.select_scatter, a.slice_scatter, a._unsafe_masked_index, a.floor_divide])
    table[a.copy.default] = lambda old, new, non_blocking=False: new.expand(old.shape)
    table[a._unsafe_index.Tensor] = lambda x, i: a.index.Tensor(x, i)

    def made(f):
        def run(x):
            key = (f.__name__, tuple(x.shape))
            if key not in made_graphs:
                graph_module = make_fx(torch.func.functionalize(f), decomposition_table=table)(x)
                for node in graph_module.graph.nodes:  # a device cannot be written as data
                    node.kwargs = {k: v for k, v in node.kwargs.items() if k not in ("device", "pin_memory")}
                graph_module.recompile()
                made_graphs[key] = graph_module
            return made_graphs[key](x)
        return run
    return {f.__name__: made(f) for f in functions}
