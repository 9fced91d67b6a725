"""Every refusal has a reason, and names what would have been taken."""

import pytest
import torch
from torch import fx

from course_lib.backends import (
    Support,
    argument,
    argument_is,
    dtypes,
    keeps_dtype,
    one_dtype,
    rank_at_most,
    target_name,
)
from course_lib.backends.toy import SUPPORT, ToyTarget
from course_lib.graph import propagate_shapes

ATEN = torch.ops.aten
FLOAT, INTEGER, MASK = torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 3, dtype=torch.bool)
DEEP = torch.zeros([1] * 9)

# operator, operands, keyword arguments, the rule that refuses it and part of the reason; None where it is taken
CASES = [
    (ATEN.add.Tensor, (FLOAT, FLOAT), {}, None, ""),
    (ATEN.add.Tensor, (FLOAT, FLOAT), {"alpha": 2}, "argument", "alpha=2; only alpha=1"),
    (ATEN.add.Tensor, (FLOAT, INTEGER), {}, "mixed dtypes", "float32 and int64"),
    (ATEN.add.Tensor, (INTEGER, 0.5), {}, "mixed dtypes", "makes float32 of int64"),
    (ATEN.add.Tensor, (DEEP, DEEP), {}, "rank", "9 dimensions; at most 8"),
    (ATEN.add.Tensor, (INTEGER, 2), {}, None, ""),
    (ATEN.exp.default, (FLOAT,), {}, None, ""),
    (ATEN.exp.default, (FLOAT.to(torch.complex64),), {}, "dtype", "complex64; aten.exp takes float32"),
    (ATEN.div.Tensor_mode, (FLOAT, FLOAT), {"rounding_mode": "floor"}, "argument", "rounding_mode=floor"),
    (ATEN.where.self, (MASK, FLOAT, FLOAT), {}, None, ""),
    (ATEN.where.self, (MASK, FLOAT, FLOAT.double()), {}, "mixed dtypes", "type of the result"),
    (ATEN.sum.dim_IntList, (FLOAT, [1]), {}, None, ""),
    (ATEN.sum.dim_IntList, (FLOAT, [1]), {"dtype": torch.float64}, "mixed dtypes", "float64 of float32"),
    (ATEN.pow.Scalar, (2, FLOAT), {}, "argument", "2 as its first operand"),
    (ATEN.bernoulli.default, (FLOAT,), {}, "random", "draws random numbers"),
    (ATEN.add_.Tensor, (FLOAT, FLOAT), {}, "effect", "more than compute its result"),
    (ATEN.sort.default, (FLOAT,), {}, "operator", "the target has no aten.sort"),
]  # fmt: skip


def node_of(operator, operands, keywords=None) -> fx.Node:
    graph = fx.Graph()
    tensors = [operand for operand in operands if isinstance(operand, torch.Tensor)]
    inputs = iter([graph.placeholder(f"input_{number}") for number in range(len(tensors))])
    given = tuple(next(inputs) if isinstance(operand, torch.Tensor) else operand for operand in operands)
    node = graph.call_function(operator, given, keywords)
    graph.output(node)
    propagate_shapes(fx.GraphModule(torch.nn.Module(), graph), tensors)
    return node


@pytest.mark.parametrize(("operator", "operands", "keywords", "rule", "reason"), CASES, ids=lambda value: None)
def test_the_toy_machine_says_what_it_takes_and_why_not(operator, operands, keywords, rule, reason):
    objection = SUPPORT.objection(node_of(operator, operands, keywords))
    assert (objection.rule if objection else None) == rule
    assert objection is None or reason in objection.reason


def test_a_table_of_ones_own_checks_its_conditions_in_order():
    support = Support({"aten.mul": (one_dtype, keeps_dtype)}, always=(dtypes(torch.float32), rank_at_most(2)))
    assert support.objection(node_of(ATEN.mul.Tensor, (FLOAT, FLOAT))) is None
    assert support.objection(node_of(ATEN.mul.Tensor, (FLOAT[None], FLOAT))).rule == "rank"
    assert support.objection(node_of(ATEN.mul.Tensor, (FLOAT, FLOAT.double()))).rule == "dtype"
    assert support.objection(node_of(ATEN.exp.default, (FLOAT,))).rule == "operator"


def test_an_argument_is_found_by_name_position_or_default():
    by_position, left_out = node_of(ATEN.softmax.int, (FLOAT, 1)), node_of(ATEN.gelu.default, (FLOAT,))
    by_name = node_of(ATEN.gelu.default, (FLOAT,), {"approximate": "tanh"})
    assert [argument(by_position, "dim"), argument(by_name, "approximate")] == [1, "tanh"]
    assert argument(left_out, "approximate") == "none"
    assert argument_is("approximate", "none")(left_out) is None
    assert "only approximate='none'" in argument_is("approximate", "none")(by_name).reason


def test_names_leave_the_overload_out_and_inputs_are_no_operators():
    node = node_of(ATEN.add.Tensor, (FLOAT, FLOAT))
    assert target_name(node) == "aten.add"
    assert ToyTarget().objection(node.args[0]).rule == "no operator"
