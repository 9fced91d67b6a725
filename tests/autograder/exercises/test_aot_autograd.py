"""What people likely think of writes, decompositions, joint graphs and gradients is named where it shows."""

import pytest

from tests.autograder.exercises.judged import judged, reference, said
from tests.drawn import third


def test_wrong_ideas_of_shared_memory_are_named():
    text = said(
        "08_functionalise",
        ("return torch.cat([x[:, :1] ** 2, x[:, 1:]], dim=1)", "return x**2"),
        ("return (y, y[0])", "return y, x[0] + 1"),
        ("return (new, new + 1)", "return x, new + 1"),
        ("x.cumprod(dim=1)", "torch.cat([x[:, :1], x[:, 1:] * x[:, :-1]], dim=1)"),
        ("return (y, y[:, 2:5])", "return y, x[:, 2:5]"),
    )
    for words in ("only the first column", "the later write shows", "old x was returned", "new value", "through inner"):
        assert words in text


def test_a_graph_that_writes_into_a_copy_is_refused():
    text = said("08_functionalise", ("x.cumprod(dim=1)", "x.clone().cumprod_(1)"))
    assert "cumprod_" in text


# exercise, words of a message, changes of the reference
NAMED = [
    (
        "08_decompose",
        "divides by n",
        (".mean(-1, keepdim=True)\n        normed", ".sum(-1, keepdim=True) / (x.shape[-1] - 1)\n        normed"),
    ),
    ("08_decompose", "eps is missing", ("variance + 1e-05", "variance")),
    (
        "08_decompose",
        "tanh approximation",
        ("1 + torch.erf(h / math.sqrt(2))", "1 + torch.tanh(0.7978845608028654 * (h + 0.044715 * h**3))"),
    ),
    ("08_decompose", "x / sqrt(2)", ("h / math.sqrt(2)", "h")),
    ("08_decompose", "round once at the end", ("x.to(torch.float32) if", "x if")),
    (
        "08_decompose",
        "no primitive",
        ("(centred * centred).mean(-1, keepdim=True)", "h.var(-1, correction=0, keepdim=True)"),
    ),
    (
        "08_read_joint",
        "Inputs were left out",
        ("    for name in forward:", "    for name in [n for n in forward if not n.startswith('primals')]:"),
    ),
    ("08_read_joint", "The last reader was named", ("readers[0]", "readers[-1]")),
    (
        "08_read_joint",
        "has to be there in backward",
        ("in POINTWISE and set(forward[name]['args']) <= there", "in POINTWISE"),
    ),
    (
        "08_read_joint",
        "inputs of the graph forgotten",
        ("there = inputs | set(why) - {name}", "there = set(why)"),
        ("forward[name]['op'] in POINTWISE and ", ""),
    ),
    (
        "08_backward_by_hand",
        "taken as constants",
        ("g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)", "g"),
    ),
    ("08_backward_by_hand", "The mask is missing", ("by_x = by_h * kept", "by_x = by_h")),
    (
        "08_backward_by_hand",
        "eps is missing",
        ("(centred * centred).mean(-1, keepdim=True) + 1e-05", "(centred * centred).mean(-1, keepdim=True)"),
    ),
    (
        "08_backward_by_hand",
        "divides by n",
        ("(centred * centred).mean(-1, keepdim=True)", "(centred * centred).sum(-1, keepdim=True) / (h.shape[-1] - 1)"),
    ),
    (
        "08_backward_by_hand",
        "The mask was put on the residual",
        ("h = (x + bias) * kept + residual", "h = (x + bias + residual) * kept"),
    ),
    (
        "08_backward_by_hand",
        "It was not summed",
        ("by_x.sum(0), by_h, (grad * normed).sum(0), grad.sum(0)", "by_x, by_h, grad * normed, grad"),
    ),
]
TRIED = third(NAMED, name="mistakes in aot_autograd")  # the others in other runs


@pytest.mark.parametrize("mistake", TRIED, ids=[f"{n[0]}: {n[1]}" for n in TRIED])
def test_a_likely_mistake_is_named(mistake):
    exercise_id, words, *changes = mistake
    assert words in said(exercise_id, *changes)


def test_a_wrong_gradient_costs_its_own_part_of_the_checks_of_all_five():
    record = judged("08_backward_by_hand", reference("08_backward_by_hand", ("by_x.sum(0)", "by_h.sum(0)")))
    earned = {check.category: check.points / check.max_points for check in record.checks}
    shares = {"bias": 0, "odd sizes": 0.8, "precision": 0.8, "masks": 0.8}
    assert earned == pytest.approx(dict.fromkeys(earned, 1) | shares)


@pytest.mark.parametrize("part", ["how many bytes", "the first reader of each"])
def test_inputs_that_were_left_out_are_named_in_every_part(part):
    change = ("    for name in forward:", "    for name in [n for n in forward if not n.startswith('primals')]:")
    (check,) = judged("08_read_joint", reference("08_read_joint", change), only=[part]).checks
    assert "Inputs were left out" in check.message
