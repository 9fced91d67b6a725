"""Workloads are found by name, run, and are the same each time."""

import pytest
import torch

from course_lib.errors import ModelError
from course_lib.models import workload
from course_lib.models.workloads import WORKLOADS, Perceptron

NAMES = sorted({name for name, _ in WORKLOADS})


@pytest.mark.parametrize("name", NAMES)
def test_the_tiny_size_runs_on_a_cpu_and_is_the_same_each_time(name):
    state = torch.get_rng_state()
    model, inputs = workload(name).build()
    again, same = workload(name).build()
    assert torch.equal(torch.get_rng_state(), state)
    assert not model.training
    outputs = (torch.utils._pytree.tree_leaves(each(*given)) for each, given in ((model, inputs), (again, same)))
    assert all(torch.equal(one, other) for one, other in zip(*outputs, strict=True))
    different, _ = workload(name).build(seed=1)
    assert not torch.equal(next(different.parameters()), next(model.parameters()))


@pytest.mark.parametrize("name", NAMES)
def test_both_sizes_exist_and_the_base_size_runs_on_no_device(name):
    model, inputs = workload(name, "base").build(device="meta", dtype=torch.float16)
    assert all(each.is_meta for each in inputs)
    if name not in ("rnn", "lstm"):  # their loop of 512 steps takes long even without computing
        assert all(each.is_meta for each in torch.utils._pytree.tree_leaves(model(*inputs)))
    assert workload(name, "tiny").name == name


def test_dtype_is_that_of_parameters_and_numbers_but_not_of_tokens():
    model, (x,) = workload("perceptron").build(dtype=torch.float64)
    assert (x.dtype, next(model.parameters()).dtype) == (torch.float64, torch.float64)
    _, (tokens,) = workload("encoder").build(dtype=torch.float64)
    assert tokens.dtype == torch.int64


def test_an_unknown_name_is_refused_with_those_that_exist():
    with pytest.raises(ModelError, match=r"workload got 'gpt'.*bert_layer"):
        workload("gpt")


def test_the_perceptron_is_its_formula():
    model, x = Perceptron(3, 5, 2).double(), torch.randn(4, 3, dtype=torch.float64)
    inner = x @ model.up.weight.T + model.up.bias
    expected = 0.5 * inner * (1 + torch.erf(inner / 2**0.5)) @ model.down.weight.T + model.down.bias
    torch.testing.assert_close(model(x), expected)


def test_the_docstring_names_every_workload() -> None:
    for name in {name for name, _ in WORKLOADS}:
        assert f'"{name}"' in str(workload.__doc__)
