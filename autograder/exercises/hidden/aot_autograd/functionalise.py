"""Hidden checks and controls of exercise 08.1."""

from __future__ import annotations

from autograder.exercises.aot_autograd import functionalise as visible
from autograder.host.exercise import Check, Control, HiddenPart

functional = visible.functional

REFERENCE = '''
def functional():
    """Five programs that write nowhere."""

    def first_column(x):
        return torch.cat([x[:, :1] * 2, x[:, 1:]], dim=1)

    def through_a_view(x):
        y = torch.cat([x[:1] + 1, x[1:]]) * 2
        return y, y[0]

    def input_changed(x):
        new = x.clamp(min=0)
        return new, new + 1

    def accumulated(x):
        return x.cumsum(dim=1)

    def nested(x):
        y = torch.select_scatter(x, x[:, 2:5].sum(1), 1, 3)
        return y, y[:, 2:5]

    functions = (first_column, through_a_view, input_changed, accumulated, nested)
    return {function.__name__: function for function in functions}
'''
AS_THEY_WERE = '''
def functional():
    """The programs as they were."""

    def first_column(x):
        y = x.clone()
        y[:, 0] *= 2
        return y

    def through_a_view(x):
        y = x.clone()
        row = y[0]
        row += 1
        y *= 2
        return y, row

    def input_changed(x):
        x.clamp_(min=0)
        return x, x + 1

    def accumulated(x):
        y = x.clone()
        for i in range(1, 6):
            y[:, i] += y[:, i - 1]
        return y

    def nested(x):
        y = x.clone()
        block = y[:, 2:5]
        inner = block[:, 1]
        inner.copy_(block.sum(1))
        return y, block

    functions = (first_column, through_a_view, input_changed, accumulated, nested)
    return {function.__name__: function for function in functions}
'''

HIDDEN = HiddenPart(
    checks=(
        Check("a view of a view", "nested views", 1.6, functional("nested", rows=(4, 1))),
        Check("other numbers of rows", "other sizes", 0.8, functional(*visible.PROGRAMS, rows=(1, 33))),
        Check("gradients through all of them", "gradients", 0.8, functional(*visible.PROGRAMS, gradients=True)),
    ),
    controls=(Control("reference", REFERENCE, 8), Control("as they were", AS_THEY_WERE, 0)),
)
