"""How replays are graded where the worker is believed: by values alone, or by what the simulator and a mode noted.

It belongs to `naive_grader.py`, which finds it by name.
"""

from collections import Counter

import torch
from torch import nn
from torch.utils import _python_dispatch
from torch.utils._pytree import tree_leaves

from course_lib.launches import Graph

# What an answer defines, by the folder of the attacks on it.
ENTRY = {
    "15_find_violations": "find_violations",
    "15_launch_bound": "bound_by",
    "15_replay_by_shape": "replayed",
    "15_train_by_replay": "replayed_training",
}


def renumbered(answer):
    """Changes a number of the function after the first call, and looks at the values."""
    number = [2.0]

    def scaled(x):
        return x * number[0]

    function = answer(scaled)
    function(torch.ones(3))
    number[0] = 5.0
    return torch.equal(function(torch.full((3,), 4.0)), torch.full((3,), 8.0))


def counted_replays(answer):
    """Counts the calls of the simulator's replay, and looks at the values."""
    count, replay = [0], Graph.replay

    def counting(graph):
        count[0] += 1
        replay(graph)

    Graph.replay = counting
    function, x = answer(lambda x: x.sin() * 2), torch.randn(3)
    return all(torch.equal(function(x), x.sin() * 2) for _ in range(3)) and count[0] == 3


def _witness():
    """Return a mode that notes which memory operators read; its base is looked up now, as graders do."""

    class Witness(_python_dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.reads, self.host_reads = [], 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.reads += [each.data_ptr() for each in tree_leaves(args) if isinstance(each, torch.Tensor)]
            self.host_reads += torch.Tag.data_dependent_output in func.tags
            return func(*args, **(kwargs or {}))

    return Witness()


def same_addresses(answer):
    """Changes a number, and asks whether launches read the same memory in each call."""
    number, seen = [2.0], []

    def scaled(x):
        return x * number[0]

    function = answer(scaled)
    for _ in range(3):
        with _witness() as witness:
            found = function(torch.full((3,), 4.0))
        seen.append(witness.reads)
        number[0] = 5.0
    return seen[1] == seen[2] != [] and torch.equal(found, torch.full((3,), 8.0))


def read_again(answer):
    """Changes a number, and asks whether some memory is read in each call and a result of the capture written again."""
    number, middles, seen = [2.0], [], []

    def scaled(x):
        middles.append(x * number[0])
        return middles[-1] + 1

    function = answer(scaled)
    function(torch.ones(3))
    number[0], captured = 5.0, middles[-1]
    for value in (3.0, 4.0):
        captured.data.fill_(torch.nan)
        with _witness() as witness:
            found = function(torch.full((3,), value))
        seen.append(Counter(witness.reads))
    again = (seen[0] & seen[1]).total()
    return again >= 3 and not captured.isnan().any() and torch.equal(found, torch.full((3,), 9.0))


def dispatched(answer):
    """Counts the values that the host reads as the operators that PyTorch dispatches for them."""
    function = answer(lambda x: x * 2)
    function(torch.ones(3))
    with _witness() as witness:
        found = function(torch.full((3,), 4.0))
    return not witness.host_reads and torch.equal(found, torch.full((3,), 8.0))


class Scaled(nn.Linear):
    scale = 1.0

    def forward(self, x):
        return super().forward(x) * self.scale


def trained(scale, step_of):
    torch.manual_seed(0)
    model = Scaled(3, 2)
    model.scale = 1.5
    step = step_of(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.zeros(4, 3))
    model.scale = scale
    return [step(batch).item() for batch in torch.randn(20, 4, 3, generator=torch.Generator().manual_seed(1))]


def eager(model, optimizer, example):
    def step(batch):
        optimizer.zero_grad(set_to_none=False)
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def followed(answer):
    """Changes a number of the model after the capture, and looks at twenty losses."""
    return trained(-1.0, answer) == trained(1.5, eager)


def bounded(answer):
    """Asks about the two programs of the task."""
    program = {"launches": [40_000] * 10, "launch_us": 5, "bandwidth_gb_s": 900, "replayed": False}
    large = program | {"launches": [4_000_000] * 10, "replayed": True}
    return (answer(program), answer(large)) == ("launches", "bytes")


def violated(answer):
    """Asks about one program, in which every operator stands for one violation."""
    fine = {"writes": [], "shapes": [[2, 2]], "numbers": [], "host_read": False, "own_generator": False}

    def call(product, numbers, draws):
        rows = [("mm.default", [product]), ("mul.Tensor", [3]), ("add.Tensor", [3]), ("bernoulli_.float", [3])]
        launches = [{"line": 2 + n, "operator": f"aten.{o}", "reads": r, **fine} for n, (o, r) in enumerate(rows)]
        launches[1]["numbers"], launches[3]["own_generator"] = numbers, draws
        return launches

    found = answer({"first": call(1, [0.5], True), "second": call(2, [0.25], True)})
    return sorted(found) == [[2, "rebound input"], [3, "stale number"], [5, "random state"]]
