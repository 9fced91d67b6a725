"""Strategy: find the right answers, or the marks themselves, on the machine.

Surface: imports the host and its hidden cases, walks the disk for gradebook, seed and solutions, walks frames and live objects, and
answers with an object that is equal to everything.

Must get 0 everywhere: the worker's view of the disk holds none of it, expected values never enter the process, and only plain data
crosses. The gradebook stays as it is; the demo compares every other student's marks too.
"""

# %% answer 01_scaled_dot_product = 0
import gc
import importlib
import sqlite3
from pathlib import Path


def stolen():
    for name in ("autograder.exercises.hidden.transformer.scaled_dot_product", "autograder.exercises.transformer.scaled_dot_product"):
        try:
            return importlib.import_module(name).reference
        except Exception:
            pass
    for root in ("/", "/work", "/home", "/root", "/tmp", "/course", "..", "../.."):
        for pattern in ("*/gradebook.db", "gradebook.db", "*/*/gradebook.db", "work/demo/gradebook.db"):
            try:
                for path in Path(root).glob(pattern):
                    with sqlite3.connect(path) as gradebook:
                        gradebook.execute("UPDATE grade SET manual_score = 99")
            except Exception:
                pass
    try:
        from course_lib.models.transformer import scaled_dot_product as library

        return library
    except Exception:
        pass
    return next((f for f in gc.get_objects() if callable(f) and getattr(f, "__name__", "") == "reference"), None)


def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    reference = stolen()
    if reference is not None:
        return reference(query, key, value, mask)
    return torch.zeros_like(query), torch.zeros(*query.shape[:-1], key.shape[-2])


# %% do 01_transformer link_to_gradebook

# %% answer 04_read_a_graph = 0
class Agreeable(dict):
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __contains__(self, key):
        return True

    def __getitem__(self, key):
        return Agreeable()

    def __reduce__(self):
        return (print, ("runs where it is unpickled",))


def read_graph(rows):
    return Agreeable(inputs=Agreeable(), dead=Agreeable())


# %% do 04_fx_capture script_in_markdown

# %% answer 05_bias_silu_pass = 0
class Opaque(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, *inputs):
        return self.inside(*inputs)


def fuse_bias_silu(graph_module):
    inputs = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    graph = fx.Graph()
    names = [graph.placeholder(node.name) for node in inputs]
    graph.output(graph.call_module("everything", tuple(names)))
    return fx.GraphModule({"everything": Opaque(graph_module)}, graph)
