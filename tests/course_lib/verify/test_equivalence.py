"""`verify` sees every kind of difference, and nothing where there is none."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.verify import verify
from course_lib.verify.error_rule import deviation

Tensor = torch.Tensor
X = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))


class Model(nn.Module):
    """A model with everything that can differ, and switches to make it differ."""

    def __init__(self, after: Callable[[Any], Any] = lambda y: y, p: float = 0.5, **defects: bool) -> None:
        super().__init__()
        self.linear, self.norm, self.after, self.p = nn.Linear(6, 6), nn.BatchNorm1d(6), after, p
        self.defects = defects
        nn.init.eye_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        if "extra_state" in defects:
            self.register_buffer("extra", torch.zeros(1))

    def forward(self, x: Tensor) -> Any:
        if "mutates" in self.defects:
            x.mul_(1.0).add_(1.0)
            x = x - 1.0
        weight = self.linear.weight.detach() if "no_gradient" in self.defects else self.linear.weight
        h = self.norm(F.linear(x, weight, self.linear.bias))
        return self.after(F.dropout(h, self.p, self.training))


def test_a_program_is_the_same_as_itself_and_its_copies_are_not_changed() -> None:
    model = Model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    report = verify(model, Model(), (X,), dtypes=(torch.float64, torch.float32, torch.bfloat16))
    assert report.passed, str(report)
    assert {finding.where for finding in report.findings} >= {"eval, float64", "train, bfloat16", "always"}
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.training


class Reordered(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flip(-1).sum(-1)


class Summed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum(-1)


def test_a_sum_in_another_order_is_the_same() -> None:
    assert verify(Summed(), Reordered(), (torch.randn(3, 1000),), dtypes=(torch.float64, torch.float32)).passed


DEFECTS: dict[str, tuple[nn.Module, str]] = {
    "values": (Model(lambda y: y * (1 + 1e-4)), "output 0"),
    "one precision lower": (Model(lambda y: y.to(torch.bfloat16).to(y.dtype)), "output 0"),
    "NaN": (Model(lambda y: torch.where(y > 0, y, y * float("nan"))), "output 0"),
    "dtype": (Model(lambda y: y.double()), "output 0"),
    "shape": (Model(lambda y: y[:1]), "output 0"),
    "structure": (Model(lambda y: (y, y)), "structure"),
    "strides": (Model(lambda y: y.t().contiguous().t()), "strides"),
    "gradient": (Model(lambda y: y.detach() * 2 - y), "gradient of input 0"),
    "missing gradient": (Model(no_gradient=True), "gradient of linear.weight"),
    "mutation": (Model(mutates=True), "input 0 after the run"),
    "state": (Model(extra_state=True), "state dict"),
    "dropout rate": (Model(p=0.25), "dropout"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_every_kind_of_defect_is_seen(defect: str) -> None:
    candidate, what = DEFECTS[defect]
    report = verify(Model(), candidate, (X,))
    assert not report.passed
    assert what in {finding.what for finding in report.failures}, str(report)
    assert "FAIL" in str(report)


class Unread(nn.Module):
    """A parameter that no result depends on, or that a result depends on with the factor 0."""

    def __init__(self, factor: float | None) -> None:
        super().__init__()
        self.weight, self.unread, self.factor = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3)), factor

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + (0.0 if self.factor is None else self.factor * self.unread)


@pytest.mark.parametrize(("reference", "candidate", "same"), [(None, 0.0, False), (0.0, None, False), (0.0, -0.0, True),
                                                              (None, None, True)])  # fmt: skip
def test_no_gradient_is_not_a_gradient_of_zeros(reference: float | None, candidate: float | None, same: bool) -> None:
    report = verify(Unread(reference), Unread(candidate), (torch.randn(3),))
    assert report.passed == same
    assert {finding.what for finding in report.failures} == (set() if same else {"gradient of unread"})


def test_an_output_that_is_an_input_is_seen() -> None:
    report = verify(lambda x: x.clone(), lambda x: x, (X,))
    assert {finding.what for finding in report.failures} == {"aliasing"}


def test_a_candidate_must_fail_where_the_reference_fails() -> None:
    def fails(x: Tensor) -> Tensor:
        raise ValueError("no")

    assert verify(fails, fails, (X,)).passed
    assert not verify(fails, torch.relu, (X,)).passed
    assert not verify(torch.relu, fails, (X,)).passed


def test_two_dropouts_are_compared_with_the_same_masks() -> None:
    def twice(x: Tensor) -> Tensor:
        return F.dropout(x, 0.5, True) + F.dropout(x * 2, 0.25, True)

    def other(x: Tensor) -> Tensor:
        return torch.dropout(input=x, p=0.5, train=True) + F.dropout(2 * x, p=0.25)

    def once(x: Tensor) -> Tensor:
        return F.dropout(x, 0.5, True) * 3

    assert verify(twice, other, (X,)).passed
    assert not verify(twice, once, (X,)).passed


def _draws_after(x: Tensor) -> tuple[Tensor, Tensor]:
    return F.dropout(x, 0.5, True), torch.rand(3)


def _draws_before(x: Tensor) -> tuple[Tensor, Tensor]:
    drawn = torch.rand(3)
    return F.dropout(x, 0.5, True), drawn


def _draws_more(x: Tensor) -> tuple[Tensor, Tensor]:
    found = _draws_after(x)
    torch.rand(1)
    return found


def _two(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2, x * 2


def _one_twice(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    return y, y


class _NoSecond(torch.autograd.Function):
    """A cube with a right first gradient and a wrong second one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient * 3 * x.detach() ** 2


class _FailsTwice(_NoSecond):
    """A cube whose gradient cannot be differentiated."""

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            raise RuntimeError("no second derivative")
        (x,) = ctx.saved_tensors
        return gradient * 3 * x**2


EFFECTS: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "draw before": (_draws_after, _draws_before, "random numbers"),
    "one more draw": (_draws_after, _draws_more, "random numbers"),
    "outputs that alias": (_two, _one_twice, "aliasing"),
    "wrong second gradient": (lambda x: x**3, _NoSecond.apply, "second gradient of input 0"),
    "no second gradient": (lambda x: x**3, _FailsTwice.apply, "double backward"),
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_draws_aliases_and_second_gradients_are_compared(effect: str) -> None:
    reference, candidate, what = EFFECTS[effect]
    assert verify(reference, reference, (X,)).passed
    report = verify(reference, candidate, (X,))
    assert {finding.what for finding in report.failures} == {what}, str(report)


def test_second_gradients_are_asked_only_where_the_reference_has_them() -> None:
    assert verify(_FailsTwice.apply, _FailsTwice.apply, (X,)).passed
    assert verify(_FailsTwice.apply, lambda x: x**3, (X,)).passed


class _Named(nn.Module):
    """A product with parameters in a given order."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            self.register_parameter(name, nn.Parameter(torch.ones(6)))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.a + self.b


def test_another_order_of_parameters_is_said_and_is_no_failure() -> None:
    report = verify(_Named("a", "b"), _Named("b", "a"), (X,), modes=("eval",))
    assert report.passed
    assert "note always: parameter order: parameter 0 is b, of the reference a" in str(report)
    assert not verify(_Named("a", "b"), _Named("a", "b"), (X,), modes=("eval",)).notes


def test_random_states_are_restored() -> None:
    before = torch.get_rng_state()
    verify(_draws_after, _draws_after, (X,), modes=("eval",))
    assert torch.equal(torch.get_rng_state(), before)


CASES: Sequence[tuple[Tensor, bool]] = [
    (torch.tensor([1.0, float("inf")]), True),
    (torch.tensor([1.0 + 1e-6, float("inf")]), True),
    (torch.tensor([1.0 + 1e-4, float("inf")]), False),
    (torch.tensor([1.0, -float("inf")]), False),
    (torch.tensor([1.0, 7.0]), False),
    (torch.tensor([float("nan"), float("inf")]), False),
]


@pytest.mark.parametrize(("actual", "passes"), CASES, ids=range(len(CASES)))
def test_the_error_rule(actual: Tensor, passes: bool) -> None:
    truth = torch.tensor([1.0, float("inf")], dtype=torch.float64)
    assert deviation(actual, truth, truth.float()).within_bound is passes
