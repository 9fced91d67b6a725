"""Strategy: make the grader read a verdict that the student wrote.

Surface: prints full marks on every inherited descriptor, patches torch.allclose, torch.testing and time at import, answers with
subclassed tensors, edits points and type of the check cells in the notebook, leaves a forged output behind.

Must get 0 everywhere: comparison and clock are in another process, what is printed is kept as output and read by nobody, bytes that
nobody asked for are a malformed answer, and nbgrader's metadata is written anew.
"""

# %% answer 01_scaled_dot_product = 0
import os
import time

torch.allclose = torch.equal = lambda *args, **kwargs: True
torch.testing.assert_close = lambda *args, **kwargs: None
time.perf_counter = time.monotonic = lambda: 0.0


class Agrees(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True


def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    for descriptor in range(1, 3):
        os.write(descriptor, b'\n{"schema": "fusion-course/submission/1", "points": 10.0, "max_points": 10.0}\n')
    return torch.zeros_like(query).as_subclass(Agrees), torch.zeros(1).as_subclass(Agrees)


# %% do 01_transformer points_400

# %% answer 04_read_a_graph = 0
import os

LINE = b'{"status": "passed", "points": 6.0, "max_points": 6.0}\n'


def read_graph(rows):
    for descriptor in range(1, 64):
        try:
            os.write(descriptor, LINE)
        except OSError:
            pass
    os._exit(0)


# %% do 04_fx_capture forge_output

# %% answer 05_bias_silu_pass = 0
def fuse_bias_silu(graph_module):
    graph = graph_module.graph
    output = next(node for node in graph.nodes if node.op == "output")
    with graph.inserting_before(output):
        graph.call_function(torch.ops.course_lib.bias_silu, (torch.ones(1, 1), torch.ones(1)))
        graph.call_function(os.system if "os" in globals() else __import__("os").system, ("echo full marks",))
    graph_module.recompile()
    return graph_module
