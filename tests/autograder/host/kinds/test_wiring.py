"""The origin of an argument is read from the graph, through steps that only change a shape."""

import pytest
import torch
from torch import fx, nn
from torch.nn import functional as F

from autograder.host.artifacts import Artifact
from autograder.host.kinds.wiring import Wiring, input_named, output_of, result_of, tensor_at
from course_lib.graph import to_data

TARGET = "torch.nn.functional.layer_norm"
ARGUMENTS = ("input", "normalized_shape", "weight", "bias", "eps")


class Norms(nn.Module):
    """A linear layer and two norms; `call` computes the input of the first norm."""

    def __init__(self, call, *, swapped=False):
        super().__init__()
        self.linear, self.call, self.swapped = nn.Linear(8, 8), call, swapped
        self.weight, self.bias = nn.Parameter(torch.ones(8)), nn.Parameter(torch.zeros(8))

    def forward(self, x, y):
        weight, bias = (self.bias, self.weight) if self.swapped else (self.weight, self.bias)
        first = F.layer_norm(self.call(self, x), (8,), weight, bias=bias)
        return F.layer_norm(first.view(-1, 8), (8,), self.weight, self.bias) + y


def fault(call, expected, **options):
    artifact = Artifact(*to_data(fx.symbolic_trace(Norms(call, **options))))
    return Wiring(ARGUMENTS, expected).fault(artifact, TARGET)


RIGHT = {"weight": tensor_at("weight"), "bias": tensor_at("bias")}
SECOND = {"input": result_of(1)}


@pytest.mark.parametrize(
    ("call", "origin"),
    [
        (lambda self, x: x, input_named("x")),
        (lambda self, x: self.linear(x), output_of("linear")),
        (lambda self, x: F.linear(x, self.linear.weight), output_of("linear")),
        (lambda self, x: self.linear(x).unflatten(-1, (2, 4)).transpose(0, 1).flatten(1), output_of("linear")),
    ],
)
def test_an_origin_is_found_through_changes_of_shape(call, origin):
    assert fault(call, [{"input": origin, **RIGHT}, SECOND]) == ""
    assert f"gets {origin} as input; expected {input_named('y')}" in fault(call, [{"input": input_named("y")}, SECOND])


def test_arguments_that_are_swapped_are_named():
    found = fault(lambda self, x: x, [RIGHT, SECOND], swapped=True)

    assert found == f"call number 1 of {TARGET} gets `bias` as weight; expected `weight`"


def test_an_argument_that_is_missing_or_constant_is_named():
    assert "gets nothing as mask" in fault(lambda self, x: x, [{"mask": input_named("y")}, {}])
    assert "gets a constant as normalized_shape" in fault(
        lambda self, x: x, [{"normalized_shape": input_named("y")}, {}]
    )


def test_what_is_computed_in_another_way_and_another_number_of_calls_are_left_to_the_numbers():
    assert fault(lambda self, x: x * 2, [{"input": input_named("y")}, SECOND]) == ""
    assert fault(lambda self, x: F.linear(x, x), [{"input": input_named("y")}, SECOND]) == ""
    assert fault(lambda self, x: x, [{"input": input_named("y")}]) == ""


def test_what_was_computed_before_the_call_explains_wrong_numbers():
    artifact = Artifact(*to_data(fx.symbolic_trace(Norms(lambda self, x: (x * 2).view(-1, 8)))))
    wiring = Wiring(ARGUMENTS, [{"input": input_named("x")}, SECOND])

    assert wiring.computed(artifact, TARGET) == (
        f"call number 1 of {TARGET} gets as input the result of operator.mul, not the input `x` itself"
    )
    plain = Artifact(*to_data(fx.symbolic_trace(Norms(lambda self, x: self.linear(x).view(-1, 8)))))
    assert Wiring(ARGUMENTS, [{"input": output_of("linear")}, {}]).computed(plain, TARGET) == ""
