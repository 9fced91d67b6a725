"""Tensors that come back are compared bit for bit with those that were sent."""

import pytest
import torch
from torch import fx, nn

from autograder.host.artifacts import Artifact
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.sent_tensors import Sent, other_values
from course_lib.graph import to_data


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.linear(x))


def zeroed(gm):
    gm.linear.weight.detach().zero_()


def last_bit(gm):
    gm.linear.bias.detach().view(torch.int32)[2] ^= 1


def negative_zero(gm):
    gm.norm.bias.detach().neg_()  # of zeros, which compare as equal


def statistics(gm):
    gm.norm.running_var.mul_(2)


def counted(gm):
    gm.norm.num_batches_tracked.add_(1)


def narrower(gm):
    gm.linear.half()


def transposed(gm):
    gm.linear.weight = nn.Parameter(gm.linear.weight.detach().T.clone())


def frozen(gm):
    gm.linear.weight.requires_grad_(False)


def tied(gm):
    gm.norm.bias = gm.norm.weight


FAULTS = {
    zeroed: "`linear.weight` came back changed: 12 of 12 values differ, the first is 0 where",
    last_bit: "`linear.bias` came back changed: 1 of 4 values differ",
    negative_zero: "`norm.bias` came back changed: 4 of 4 values differ, the first is -0 where 0 was sent",
    statistics: "`norm.running_var` came back changed",
    counted: "`norm.num_batches_tracked` came back changed: 1 of 1 values differ, the first is 1 where 0 was sent",
    narrower: "its dtype is torch.float16, and torch.float32 was sent",
    transposed: "its shape is (3, 4), and (4, 3) was sent",
    frozen: "`linear.weight` came back changed: it takes no gradient now",
    tied: "`norm.bias` came back changed",
}


def sent_and_returned(change):
    program = fx.symbolic_trace(Layers())
    graph, tensors = to_data(program)
    sent = Sent.of_graph(graph, {path: tensor.clone() for path, tensor in tensors.items()})
    change(program)
    return sent, Artifact(*to_data(program))


@pytest.mark.parametrize("change", FAULTS, ids=lambda change: change.__name__)
def test_what_differs_is_named(change):
    sent, returned = sent_and_returned(change)

    with pytest.raises(CheckFailedError) as raised:
        sent.require_kept(returned, "In the program: ")

    assert FAULTS[change] in str(raised.value)
    assert str(raised.value).startswith("In the program: the tensor `")
    assert raised.value.changes


def test_copies_and_new_tensors_are_allowed():
    def change(gm):
        gm.linear.weight = nn.Parameter(gm.linear.weight.detach().clone())
        gm.register_buffer("factor", torch.tensor(0.5))
        output = gm.graph.find_nodes(op="output")[0]
        with gm.graph.inserting_before(output):
            output.args = (gm.graph.call_function(torch.mul, (output.args[0], gm.graph.get_attr("factor"))),)

    sent, returned = sent_and_returned(change)

    sent.require_kept(returned, "")
    assert "factor" in returned.tensors


def test_tensors_of_a_module_are_those_of_its_graph():
    layers = Layers()
    sent = Sent.of_module(layers)

    sent.require_kept(Artifact(*to_data(fx.symbolic_trace(layers))), "")
    zeroed(layers)
    with pytest.raises(CheckFailedError):
        sent.require_kept(Artifact(*to_data(fx.symbolic_trace(layers))), "")


def test_other_values_have_the_form_and_the_signs_of_the_real_ones():
    values = torch.tensor([[-2.0, 3.0]], dtype=torch.float64)

    assert torch.equal(other_values(values), torch.tensor([[-1.0, 1.5]], dtype=torch.float64))
    assert torch.equal(other_values(torch.tensor([True])), torch.tensor([True]))


def copied(gm):
    gm.register_parameter("mine", nn.Parameter(gm.linear.weight.detach().clone()))
    linear = next(node for node in gm.graph.nodes if node.target == "linear")
    with gm.graph.inserting_before(linear):
        weight = gm.graph.get_attr("mine")
        product = gm.graph.call_function(nn.functional.linear, (linear.args[0], weight))
    linear.replace_all_uses_with(product)
    gm.graph.erase_node(linear)


def test_a_copy_under_another_name_is_named():
    sent, returned = sent_and_returned(copied)

    assert sent.copied(returned).startswith("The tensor `mine` is a copy of `linear.weight`")


def test_a_result_without_copies_has_none_named():
    sent, returned = sent_and_returned(zeroed)

    assert sent.copied(returned) == ""
