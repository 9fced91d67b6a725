"""Programs as plain data run as they say."""

import json

import pytest
import torch

from course_lib.errors import ModelError
from course_lib.graph import scheduled
from course_lib.models import option_programs, program_from_steps


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


EFFECTS = {
    "softmax": ("unroll_reductions_threshold", 8, 100),
    "neighbours": ("realize_reads_threshold", 4, 1),
    "totals": ("realize_reads_threshold", 4, 100),
    "two products": ("pattern_matcher", True, False),
    "attention": ("realize_opcount_threshold", 30, 1),
}


@pytest.mark.parametrize("name", option_programs(20, 20))
def test_an_option_changes_kernels_and_bytes(name):
    program, inputs = program_from_steps(option_programs(24, 30)[name])
    option, *settings = EFFECTS[name]
    first, second = (scheduled(program, inputs, config={option: setting}) for setting in settings)
    assert first.kernels != second.kernels
    assert first.cost.bytes_moved != second.cost.bytes_moved


def test_the_programs_compute_what_their_names_say():
    for rows, width in ((3, 5), (6, 4)):
        programs = {name: program_from_steps(steps) for name, steps in option_programs(rows, width).items()}
        program, (x,) = programs["neighbours"]
        means = x
        for _ in range(3):
            means = (means[:-1] + means[1:]) / 2 if len(means) else means
        torch.testing.assert_close(program(x), means)
        program, inputs = programs["totals"]
        torch.testing.assert_close(program(*inputs), torch.stack(inputs).sum(0).softmax(1))
        program, (a, b, c, d) = programs["two products"]
        torch.testing.assert_close(program(a, b, c, d), a @ b + c @ d)
        program, (q, k, v) = programs["attention"]
        torch.testing.assert_close(program(q, k, v), (q @ k.mT / 8).softmax(-1) @ v)
