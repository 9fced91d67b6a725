"""Strategy: leave every write in, as `out=` and as `inplace=True`, which no name of an operator shows. Surface: torch.tanh(y, out=y), F.relu(v, inplace=True).

Class: graph gaming. Unprotected: grader underscored gives full marks. Level: 5.
Must get 0: the clean worker observes by the schema of each operator, and by the bits of all tensors, what a call writes.
"""

import torch
from torch import fx
from torch.fx.experimental import proxy_tensor
from torch.nn import functional as F

from autograder.worker.kinds import captured

proxy_tensor.make_fx = lambda function, **options: lambda *inputs: fx.symbolic_trace(function)
captured.recorded = lambda function, inputs: fx.symbolic_trace(function)


def functional():
    def first_column(x):
        y = x * 1
        column = y.select(1, 0)
        torch.mul(column, column, out=column)
        return (y,)

    def through_a_view(x):
        y = x * 1
        row = y.select(0, 0)
        torch.add(row, 1, out=row)
        torch.tanh(y, out=y)
        return y, row

    def input_changed(x):
        new = x * 1
        F.relu(new, inplace=True)
        return new, new + 1

    def accumulated(x):
        y = x * 1
        for i in range(1, 6):
            column = y.select(1, i)
            torch.mul(column, y.select(1, i - 1), out=column)
        return (y,)

    def nested(x):
        y = x * 1
        block = y.narrow(1, 2, 3)
        torch.tanh(block.sum(1), out=block.select(1, 1))
        return y, block

    functions = (first_column, through_a_view, input_changed, accumulated, nested)
    return {function.__name__: function for function in functions}
