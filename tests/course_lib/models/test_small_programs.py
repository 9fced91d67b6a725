"""The small programs do what their names say, and what captures make of them is as the course tells it."""

import pytest
import torch

from course_lib.capture import compare_modes
from course_lib.models.small_programs import SMALL_PROGRAMS

X = torch.tensor([[1.0, 2.0], [3.0, -4.0], [0.5, 1.5]])
LATER = -torch.cat([X, X])

EXPECTED = [
    ("branch_on_value", "silently wrong", "captured"),
    ("branch_on_rows", "silently wrong", "captured"),
    ("add_up_rows", "silently wrong", "captured"),
    ("divide_by_rows", "captured", "captured"),
    ("divide_by_len", "silently wrong", "captured"),
    ("scale_by_item", "silently wrong", "captured"),
    ("with_options", "captured", "refused"),
]


@pytest.mark.parametrize(("name", "trace", "script"), EXPECTED, ids=[e[0] for e in EXPECTED])
def test_what_trace_and_script_make_of_a_program(name, trace, script):
    found = compare_modes(SMALL_PROGRAMS[name], (X,), [(LATER,)], modes=("trace", "script"))
    assert found.verdicts == {"trace": trace, "script": script}


def test_numpy_is_a_constant_to_a_trace_and_unknown_to_a_script():
    found = compare_modes(SMALL_PROGRAMS["through_numpy"], (X,), [(-X,)], modes=("trace", "script"))
    assert found.verdicts == {"trace": "silently wrong", "script": "refused"}


def test_the_programs_agree_with_their_names():
    assert torch.equal(SMALL_PROGRAMS["add_up_rows"](X), X.sum(0))
    assert torch.equal(SMALL_PROGRAMS["through_numpy"](X), 3 * X)
    assert torch.equal(SMALL_PROGRAMS["divide_by_len"](X), SMALL_PROGRAMS["divide_by_rows"](X))
