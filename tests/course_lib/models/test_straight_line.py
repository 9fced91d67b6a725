"""Programs as plain data run as they say."""

import json

import pytest
import torch

from course_lib.errors import ModelError
from course_lib.models import program_from_steps


def test_a_chain_computes_what_its_steps_say() -> None:
    description = {
        "inputs": [{"shape": [2, 3]}, {"shape": [3, 4]}, {"shape": [4], "dtype": "float32"}],
        "steps": [["mm", "%0", "%1"], ["add", "%3", "%2"], ["relu", "%4"]],
    }
    program, (a, b, c) = program_from_steps(json.loads(json.dumps(description)))
    assert torch.equal(program(a, b, c), torch.relu(a @ b + c))


def test_several_outputs_and_lists_are_reached() -> None:
    description = {
        "inputs": [{"shape": [4, 6], "dtype": "float64"}],
        "steps": [["split", "%0", 3, 1], ["cat", ["%1.1", "%1.0"], 1]],
    }
    program, (x,) = program_from_steps(description)
    assert x.dtype == torch.float64
    assert torch.equal(program(x), torch.cat([x[:, 3:], x[:, :3]], 1))


def test_inputs_are_fresh_each_time() -> None:
    description = {"inputs": [{"shape": [8]}], "steps": []}
    assert not torch.equal(program_from_steps(description)[1][0], program_from_steps(description)[1][0])


def test_an_operator_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ModelError, match="aten does not have"):
        program_from_steps({"inputs": [], "steps": [["nothing_of_the_kind"]]})
