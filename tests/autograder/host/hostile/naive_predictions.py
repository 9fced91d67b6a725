"""How predictions are graded where the questions are always the same, or where the answer may compute them."""

import torch
from torch import fx
from torch.nn import functional


def predicted(answer):
    """Asks about one program, and does not ask who counted."""
    steps = [{"do": do} for do in ("compute", "print", "compute", "compute")]
    return answer(steps) == {"graphs": 2, "sizes": [1, 2]}


def smooth(x, y):
    return (x + y).relu() * 0.5 + x


def collected(answer):
    """Asks about a program that everybody knows, and runs the graph that came back."""
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    results, graphs = answer(smooth, [((x, y), {})])
    ((graph, shapes),) = graphs
    known = isinstance(graph, fx.GraphModule) and [tuple(shape) for shape in shapes] == [(3, 4), (3, 4)]
    (output,) = found if isinstance(found := graph(x, y), tuple) else (found,)
    return known and torch.equal(results[0], 2 * smooth(x, y)) and torch.allclose(output, smooth(x, y))


def listed(answer):
    """Asks about the listing of one program of the task."""
    first = {"name": "op0", "kernel": 0, "graph": 0, "reads": [["arg0_1", "c0"]], "writes": "buf0", "into": ""}
    second = {"name": "g1.op0", "kernel": 1, "graph": 1, "reads": [["buf0", "c0"]], "writes": "g1.buf0", "into": ""}
    return answer()["blockers"]([first, second]) == [["op0", "g1.op0", "graph break"]]


def remembered(answer):
    """Asks about the program that stands in the task, and compares what the returned graph computes."""
    x = torch.randn(3, 4)
    found = answer(fx.symbolic_trace(lambda x: torch.relu(x) + 1))
    return torch.allclose(found(x), torch.tanh(torch.relu(x)) + 1)


def repaired(answer):
    """Compares the repaired programs as they run, and asks for no graph."""
    functions, x = answer(), torch.randn(5, 4)
    expected = {"unrolled": x.tanh().sum(0), "softened": functional.softplus(x), "chosen": functions["chosen"](x)}
    return all(torch.allclose(functions[name](x), value, atol=1e-5) for name, value in expected.items())
