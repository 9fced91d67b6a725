"""Tests of reaching operators through the dispatcher."""

import itertools

import pytest
import torch

from autograder.worker.registered_operators import NoOperatorError, operator

ADD = "torch.ops.aten.add"


def test_an_operator_is_called_by_its_name() -> None:
    assert operator(ADD)(torch.ones(2), torch.ones(2)).tolist() == [2, 2]


def test_forms_are_those_of_outputs_without_data() -> None:
    x = torch.ones(2, 3).t()
    (form,) = operator(f"forms of {ADD}")(x, x)
    assert form.tolist() == [3, 2, 1, 3]


def test_each_output_has_its_form() -> None:
    forms = operator("forms of torch.ops.aten.native_layer_norm")(torch.ones(4, 5), [5], None, None, 1e-5)
    assert [form.tolist() for form in forms] == [[4, 5, 5, 1], [4, 1, 1, 1], [4, 1, 1, 1]]


@pytest.mark.parametrize("name", ["torch.ops.lesson99.none", "forms of torch.ops.lesson99.none"])
def test_a_missing_operator_says_how_to_register_it(name: str) -> None:
    with pytest.raises(NoOperatorError, match='custom_op\\("lesson99::none"'):
        operator(name)


def test_real_forms_are_those_of_the_kernel() -> None:
    x = torch.ones(2, 3).t()
    (form,) = operator("real forms of torch.ops.aten.clone")(x)
    assert form.tolist() == [3, 2, 1, 3]


def test_dtypes_are_those_of_outputs_without_data() -> None:
    (empty,) = operator(f"dtypes of {ADD}")(torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.bfloat16))
    assert (empty.dtype, empty.numel()) == (torch.bfloat16, 0)


def test_shapes_follow_sizes_that_the_operator_never_saw() -> None:
    sizes = ((4, 6), (6, 5), (2, 9), (9, 7))
    (shape,) = operator("symbolic shapes of torch.ops.aten.mm")(*map(torch.ones, sizes))
    assert shape.tolist() == [2, 7]


def test_a_fake_kernel_that_reads_a_size_as_a_number_keeps_that_size() -> None:
    halves = torch.library.custom_op(
        "lesson_of_tests::halves", lambda x: x[:, ::2].clone(), mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    halves.register_fake(lambda x: x.new_empty(int(x.shape[0]), x.shape[1] // 2))
    (shape,) = operator("symbolic shapes of torch.ops.lesson_of_tests.halves")(torch.ones(4, 6), torch.ones(9, 8))
    assert shape.tolist() == [4, 4]


def test_declared_writes_are_those_of_the_schema() -> None:
    assert [each.tolist() for each in operator("declared writes of torch.ops.aten.relu_")(1)] == [[1]]


def test_what_a_call_leaves_in_its_tensors_is_told_and_its_inputs_stay() -> None:
    x = torch.ones(2)
    left = operator("tensors after torch.ops.aten.relu_")(-x)
    assert [each.tolist() for each in left] == [[0, 0]]
    assert x.tolist() == [1, 1]


def test_recorded_nodes_are_those_between_result_and_argument() -> None:
    assert operator("recorded nodes of torch.ops.aten.mul")(torch.ones(2), torch.ones(2))[0].tolist() == [1]


def test_what_backward_keeps_is_told_wherever_it_is_saved() -> None:
    def save(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
        ctx.rest = [inputs[1], output.new_ones(5)]

    scaled = torch.library.custom_op(
        "lesson_of_tests::scaled",
        lambda x, y, z: x * y + z,
        mutates_args=(),
        schema="(Tensor x, Tensor y, Tensor z) -> Tensor",
    )
    scaled.register_autograd(lambda ctx, g: (None, None, g), setup_context=save)
    ((x, y, z, others),) = operator("kept memory of torch.ops.lesson_of_tests.scaled")(
        *(torch.ones(2, 6) for _ in range(3))
    )
    assert (int(x) > 0, int(y) > 0, int(z)) == (True, True, 0)
    assert 20 <= int(others) < SMALL


SMALL = 1000  # bytes, of the objects of Python that hold what is kept


@pytest.mark.parametrize(
    ("saved", "of_x", "others"),
    [
        (lambda x: None, 0, 0),
        (lambda x: x.shape, 0, 0),
        (lambda x: lambda: x, 400, 0),
        (lambda x: (each for each in [x]), 400, 0),
        (lambda x: SHARED.append(x), 400, 0),
        (lambda x: SHARED.append(x.clone()), 0, 400),
        (lambda x: x.tolist(), 0, 2400),
        (lambda x: str(x.tolist()), 0, 1500),
    ],
)
def test_what_a_call_keeps_is_found_wherever_it_is(saved, of_x: int, others: int) -> None:
    def save(ctx, inputs, output):
        ctx.more = saved(inputs[0])

    twice = torch.library.custom_op(
        f"lesson_of_tests::twice{next(NUMBERS)}", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    twice.register_autograd(lambda ctx, g: 2 * g, setup_context=save)
    ((x, rest),) = operator(f"kept memory of torch.ops.{twice._qualname.replace('::', '.')}")(torch.rand(100))
    assert (int(x), others <= int(rest) < 2 * others + SMALL) == (of_x, True)


SHARED: list[object] = []
NUMBERS = itertools.count()


def test_the_rest_of_the_memory_of_an_output_is_kept() -> None:
    roomy = torch.library.custom_op(
        "lesson_of_tests::roomy", lambda x: x.new_zeros(300)[:100], mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    roomy.register_autograd(lambda ctx, g: g)
    ((x, rest),) = operator("kept memory of torch.ops.lesson_of_tests.roomy")(torch.rand(100))
    assert (int(x), 800 <= int(rest) < 800 + SMALL) == (0, True)


def test_a_formula_that_autograd_looks_into_is_recorded_in_parts() -> None:
    library = torch.library.Library("lesson_of_records", "DEF")
    library.define("gate(Tensor x) -> Tensor")
    library.impl("gate", lambda x: x.sigmoid() * x, "Autograd")
    assert operator("recorded nodes of torch.ops.lesson_of_records.gate")(torch.ones(2))[0].tolist() == [2]
