"""Every pass fuses every spelling of every operator that it looks for, and refuses `out=`."""

import warnings

import pytest
import torch

from course_lib.fusion import fuse, verify
from tests.course_lib.fusion.passes.operator_spellings import PROGRAMS, SPELLINGS, Program, operators_of

CASES = [
    (name, operator, spelling)
    for name in PROGRAMS
    for operator in operators_of(name)
    for spelling in SPELLINGS[operator]
]
LOSSY = ("gelu_tanh", "gelu_to_relu")
ALREADY = {("gelu_tanh", "gelu", "tanh"), ("gelu_tanh", "gelu", "module of tanh"), ("gelu_tanh", "gelu", "aten")}


@pytest.mark.parametrize(("name", "operator", "spelling"), CASES)
def test_a_pass_takes_every_spelling_of_its_operators(name: str, operator: str, spelling: str) -> None:
    program = Program(name, operator, spelling).eval()
    result = fuse(program, program.inputs, (name,), level="lossy" if name in LOSSY else "exact")
    expected = 0 if (name, operator, spelling) in ALREADY else 1
    assert result.num_matches == expected, result.explain()
    if name not in LOSSY:
        report = verify(program, result.graph_module, program.inputs, modes=("eval",), dtypes=(torch.float64,))
        assert report.passed, str(report)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in LOSSY])
def test_out_is_refused_wherever_it_stands(name: str) -> None:
    takers = {
        "add": lambda m, a, b: torch.add(a, b, out=torch.empty(0)),
        "mul": lambda m, a, b: torch.mul(a, b, out=torch.empty(0)),
        "div": lambda m, a, b: torch.div(a, b, out=torch.empty(0)),
        "matmul": lambda m, a, b: torch.matmul(a, b, out=torch.empty(0)),
    }
    for operator in set(takers) & set(operators_of(name)):
        program = Program(name).eval()
        program.chosen[operator] = takers[operator]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = fuse(program, program.inputs, (name,))
        assert result.num_matches == 0
        assert result.rejected
