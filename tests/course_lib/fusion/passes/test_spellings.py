"""Every pass fuses every spelling of every operator that it looks for, and refuses `out=`."""

import warnings

import pytest
import torch

from course_lib.fusion import fuse
from course_lib.verify import verify
from tests.course_lib.fusion.passes.operator_spellings import PROGRAMS, SPELLINGS, Program, operators_of
from tests.drawn import third

LOSSY = ("gelu_tanh", "gelu_to_relu")
ALREADY = {("gelu_tanh", "gelu", "tanh"), ("gelu_tanh", "gelu", "module of tanh"), ("gelu_tanh", "gelu", "aten")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pass_takes_every_spelling_of_its_operators(name: str) -> None:
    spellings = [(operator, spelling) for operator in operators_of(name) for spelling in SPELLINGS[operator]]
    tried = third(spellings, name=f"spellings for {name}")  # the others in other runs
    objections = {(operator, spelling): _objection(name, operator, spelling) for operator, spelling in tried}
    assert {case: said for case, said in objections.items() if said} == {}


def _objection(name: str, operator: str, spelling: str) -> str:
    """Return what a pass does wrong with a program whose operator is spelled in this way."""
    program = Program(name, operator, spelling).eval()
    result = fuse(program, program.inputs, (name,), level="lossy" if name in LOSSY else "exact")
    if result.num_matches != (0 if (name, operator, spelling) in ALREADY else 1):
        return result.explain()
    if name in LOSSY:
        return ""
    report = verify(program, result.graph_module, program.inputs, modes=("eval",), dtypes=(torch.float64,))
    return "" if report.passed else str(report)


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
