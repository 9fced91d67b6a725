"""Each program is worth an experiment: some option of Inductor changes what becomes of it."""

import pytest
import torch

from course_lib.graph import scheduled
from course_lib.models import option_programs, program_from_steps

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
