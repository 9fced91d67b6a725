"""What people likely think of writes, decompositions, joint graphs and gradients is named where it shows."""

import pytest

from tests.autograder.exercises.judged import judged, reference


def said(exercise_id, *changes):
    """All that the report says of the reference with some text in it replaced."""
    record = judged(exercise_id, reference(exercise_id, *changes))
    assert record.points < record.max_points
    return "\n".join(c.message for c in record.checks)


def test_wrong_ideas_of_shared_memory_are_named():
    text = said(
        "08_functionalise",
        ("return torch.cat([x[:, :1] * 2, x[:, 1:]], dim=1)", "return x * 2"),
        ("return (y, y[0])", "return y, x[0] + 1"),
        ("return (new, new + 1)", "return x, new + 1"),
        ("x.cumsum(dim=1)", "torch.cat([x[:, :1], x[:, 1:] + x[:, :-1]], dim=1)"),
        ("return (y, y[:, 2:5])", "return y, x[:, 2:5]"),
    )
    for words in ("only the first column", "the later write shows", "old x was returned", "new value", "through inner"):
        assert words in text


def test_a_graph_that_writes_into_a_copy_is_refused():
    text = said("08_functionalise", ("x.cumsum(dim=1)", "x.clone().cumsum_(1)"))
    assert "cumsum_" in text


NORMS = [
    (
        "n - 1",
        (".mean(-1, keepdim=True)\n        normed", ".sum(-1, keepdim=True) / (x.shape[-1] - 1)\n        normed"),
        "divides by n",
    ),
    ("no eps", ("variance + 1e-05", "variance"), "eps is missing"),
    (
        "tanh",
        ("1 + torch.erf(h / math.sqrt(2))", "1 + torch.tanh(0.7978845608028654 * (h + 0.044715 * h**3))"),
        "tanh approximation",
    ),
    ("erf of x", ("h / math.sqrt(2)", "h"), "x / sqrt(2)"),
    ("16 bits", ("x.to(torch.float32) if", "x if"), "round once at the end"),
    (
        "not a primitive",
        ("(centred * centred).mean(-1, keepdim=True)", "h.var(-1, correction=0, keepdim=True)"),
        "no primitive",
    ),
]


@pytest.mark.parametrize(("name", "change", "words"), NORMS, ids=[n[0] for n in NORMS])
def test_a_wrong_formula_is_named(name, change, words):
    assert words in said("08_decompose", change)


JOINT = [
    (
        "no inputs",
        ("    for name in forward:", "    for name in [n for n in forward if not n.startswith('primals')]:"),
        "Inputs were left out",
    ),
    ("last reader", ("readers[0]", "readers[-1]"), "The last reader was named"),
    (
        "everything pointwise",
        ("in POINTWISE and set(forward[name]['args']) <= there", "in POINTWISE"),
        "has to be there in backward",
    ),
    ("inputs forgotten", ("there = inputs | set(why) - {name}", "there = set(why)"), "inputs of the graph forgotten"),
]


@pytest.mark.parametrize(("name", "change", "words"), JOINT, ids=[j[0] for j in JOINT])
def test_a_wrong_reading_of_a_joint_graph_is_named(name, change, words):
    changes = [change]
    if name == "inputs forgotten":
        changes.append(("forward[name]['op'] in POINTWISE and ", ""))
    assert words in said("08_read_joint", *changes)


BACKWARD = [
    (
        "constants",
        ("g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)", "g"),
        "taken as constants",
    ),
    ("no mask", ("by_x = by_h * kept", "by_x = by_h"), "The mask is missing"),
    (
        "not summed",
        ("by_x.sum(0), by_h, (grad * normed).sum(0), grad.sum(0)", "by_x, by_h, grad * normed, grad"),
        "It was not summed",
    ),
]


@pytest.mark.parametrize(("name", "change", "words"), BACKWARD, ids=[b[0] for b in BACKWARD])
def test_a_wrong_gradient_is_named(name, change, words):
    assert words in said("08_backward_by_hand", change)
