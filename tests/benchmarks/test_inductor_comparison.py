"""The comparison with Inductor: some of its programs in each run, and a result that is wrong on purpose."""

import copy
import warnings

import pytest
import torch

from benchmarks.fusion_speed import Encoder
from benchmarks.fusion_trials.adversarial_programs import AdversarialProgram, adversarial_programs
from benchmarks.inductor_comparison import OF_OPERATORS, Outcome, difference, run, try_all
from course_lib.fusion import fuse
from tests.drawn import some


@pytest.fixture(scope="module")
def programs() -> list[AdversarialProgram]:
    return list(adversarial_programs())


def test_fuse_is_silently_wrong_nowhere(programs: list[AdversarialProgram]) -> None:
    assert len(programs) >= 238
    numbers = range(len(programs))
    for program in (programs[number] for number in some(numbers, 15, name="hard programs")):  # all in `make bench`
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict, said = try_all(program, with_inductor=False)["fuse"]
        if not any(text in program.source for text in OF_OPERATORS):
            assert verdict in ("exact", "said wrong", "refused"), (program.source, said)


def test_a_wrong_result_counts_as_wrong(programs: list[AdversarialProgram]) -> None:
    program = next(one for one in programs if "self.relu(self.bn(x))" in one.source)
    model, same = copy.deepcopy(program.module), copy.deepcopy(program.module)
    expected = run(model, program, model, gradients=True, wide=False)
    assert difference(expected, expected, run(same, program, same, gradients=True, wide=False)) == ""
    for name, value in expected.entries.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
            spoilt = Outcome({**expected.entries, name: value + 1e-3})
            assert difference(expected, expected, spoilt).startswith(name)
    assert difference(expected, expected, Outcome(raised="RuntimeError")) == "raised: RuntimeError"


def test_the_encoder_whose_fusion_is_timed_has_the_fusions_of_each_layer() -> None:
    inputs = torch.randn(2, 6, 32), torch.zeros(1, 1, 1, 6)
    found = fuse(Encoder(2).eval(), inputs, check=False).num_matches_by_pass
    assert (found["formulas"], found["bias_dropout_residual_layer_norm"]) == (6, 4)
