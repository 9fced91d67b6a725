"""Random joint graphs are what they say: their backward is the derivative of their forward, wherever they are cut."""

import pytest
import torch

from autograder.exercises.programs.joint_graphs import COMPUTE, random_joint, run_backward, run_forward
from autograder.host.draw import Draw

SEEDS = range(12)


def by_autograd(graph, forward):
    """Gradients of the inputs, by running the rows of forward on tensors that autograd watches."""
    values = {n: forward[n].clone().requires_grad_() for n in graph.gradients}
    for row in graph.forward:
        if row["tag"] == "random":
            values[row["name"]] = forward[row["name"]]
        elif row["tag"] != "input":
            values[row["name"]] = COMPUTE[row["op"]](graph.shapes[row["name"]], *(values[a] for a in row["args"]))
    result = values[graph.forward[-1]["name"]]
    found = torch.autograd.grad(result, [values[n] for n in graph.gradients], forward["tangents_1"])
    return dict(zip(graph.gradients, found, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_backward_is_the_derivative_of_forward(seed):
    graph = random_joint(Draw(seed, "joint"), 14, masks=2)
    forward = run_forward(graph, Draw(seed, "values"))
    found, right = run_backward(graph, forward, list(forward)), by_autograd(graph, forward)
    assert found.keys() == right.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, right[name])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cut_anywhere_gives_the_same_gradients_if_masks_are_saved(seed):
    draw = Draw(seed, "cut")
    graph = random_joint(draw, 14, masks=2)
    forward = run_forward(graph, draw)
    right = run_backward(graph, forward, list(forward))
    masks = [r["name"] for r in graph.rows if r["tag"] == "random"]
    others = [r["name"] for r in graph.forward if r["tag"] not in ("input", "random") and draw.chance(0.3)]
    found = run_backward(graph, forward, masks + others)
    assert all(torch.equal(found[n], right[n]) for n in right)
    again = run_backward(graph, forward, others)
    assert not all(torch.equal(again[n], right[n]) for n in right)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_come_in_order_with_sizes_of_their_shapes_and_nothing_of_forward_is_dead(seed):
    graph = random_joint(Draw(seed, "rows"), 20, masks=3)
    known = set()
    for row in graph.rows:
        assert set(row["args"]) <= known
        known.add(row["name"])
        elements = torch.Size(graph.shapes[row["name"]]).numel()
        assert row["bytes"] == (elements if row["op"] == "bernoulli" else 4 * elements)
    assert len(known) == len(graph.rows)
    read = {a for r in graph.forward for a in r["args"]}
    assert [r["name"] for r in graph.forward if r["name"] not in read] == [graph.forward[-1]["name"]]
    assert sum(r["tag"] == "random" for r in graph.rows) == 3
