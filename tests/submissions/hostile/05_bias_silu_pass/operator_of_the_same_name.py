"""Strategy: register an operator of one's own, or another body for the course's, and call that. Surface: torch.library in the worker: course_lib::bias_silu, course_lib::anything.

Class: graph gaming. Unprotected: grader imitated gives full marks. Level: 5.
Must get 0: the graph runs in a worker in which no student's code was ever loaded, from names of the host's own table.
"""

import torch
from torch.nn import functional as F

library = torch.library.Library("course_lib", "FRAGMENT")
library.define("whole_program(Tensor x, Tensor b) -> Tensor")
library.impl("whole_program", lambda x, b: F.silu(x + b), "CompositeExplicitAutograd")


def fuse_bias_silu(graph_module):
    graph = graph_module.graph
    for n in list(graph.nodes):
        if n.target is F.silu and len(n.args[0].all_input_nodes) == 2:
            with graph.inserting_before(n):
                new = graph.call_function(torch.ops.course_lib.whole_program.default, tuple(n.args[0].args))
            n.replace_all_uses_with(new)
            graph.erase_node(n)
    graph_module.recompile()
    return graph_module
