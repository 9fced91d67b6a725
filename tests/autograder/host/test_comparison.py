"""The error rule lets a reordered sum pass and one precision lower fail."""

import math

import pytest
import torch

from autograder.host import comparison, shared_inputs
from autograder.host.exercise import CheckFailedError
from autograder.protocol import ProtocolError, RawTensor

LOWER = {torch.float64: torch.float32, torch.float32: torch.float16}


def sums(dtype, seed):
    x = torch.randn(64, 1000, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)
    return x, x.double().sum(-1), x.sum(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(5))
def test_a_sum_in_another_order_passes(dtype, seed):
    x, truth, eager = sums(dtype, seed)
    truth = (
        x.double().sum(-1)
        if dtype is not torch.float64
        else torch.tensor([math.fsum(row) for row in x.tolist()], dtype=dtype)
    )
    blocks = x.reshape(64, 10, 100).sum(-1).sum(-1)
    comparison.require_close(blocks, truth, eager, "the sum")


@pytest.mark.parametrize("dtype", LOWER)
@pytest.mark.parametrize("seed", range(5))
def test_one_precision_lower_fails(dtype, seed):
    _, truth, eager = sums(dtype, seed)
    with pytest.raises(CheckFailedError, match="rounding makes at most"):
        comparison.require_close(truth.to(LOWER[dtype]).to(dtype), truth, eager, "the sum")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t[None], "shape"),
        (lambda t: t.double(), "dtype"),
        (lambda t: t * math.nan, "NaN"),
        (lambda t: t * 0, "off by"),
        (lambda t: t + 1e-3, "off by"),
        (lambda t: torch.where(torch.arange(64) == 3, math.inf, t), "off by"),
    ],
)
def test_what_is_wrong_is_said(change, words):
    _, truth, eager = sums(torch.float32, 0)
    with pytest.raises(CheckFailedError, match=words):
        comparison.require_close(change(eager), truth, eager, "the sum")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_product_with_the_answers_own_output_passes_when_it_is_rounded_as_eager_rounds_it(dtype):
    generator = torch.Generator().manual_seed(3)
    value = torch.randn(127, 16, generator=generator, dtype=torch.float64).to(dtype)
    shares = torch.softmax(torch.randn(64, 127, generator=generator), -1).to(dtype)
    truth, scale = shares.double() @ value.double(), float(value.double().abs().max())
    comparison.require_rounded(shares @ value, truth, dtype=dtype, scale=scale, what="context")


def test_wild_outputs_do_not_widen_what_is_allowed():
    generator = torch.Generator().manual_seed(3)
    value = torch.randn(6, 4, generator=generator)
    wild = torch.randn(5, 6, generator=generator) * 1e6
    truth, eager = wild.double() @ value.double(), wild @ value
    wrong = eager + 0.05
    comparison.require_close(wrong, truth, eager, "context")  # takes its measure from the wild numbers
    with pytest.raises(CheckFailedError, match="rounding makes at most"):
        comparison.require_rounded(wrong, truth, dtype=torch.float32, scale=float(value.abs().max()), what="context")


@pytest.mark.parametrize("change", [lambda t: t * math.nan, lambda t: t.double(), lambda t: t[:1], lambda t: t + 1e-3])
def test_rounding_excuses_nothing_else(change):
    truth = torch.randn(5, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    with pytest.raises(CheckFailedError):
        comparison.require_rounded(change(truth.float()), truth, dtype=torch.float32, scale=3.0, what="context")


def test_infinities_and_nans_of_the_reference_are_expected():
    truth = torch.tensor([1.0, math.inf, math.nan], dtype=torch.float64)
    comparison.require_close(truth.float(), truth, truth.float(), "the output")
    for wrong in ([1.0, -math.inf, math.nan], [1.0, math.inf, 0.0], [1.0, 0.0, math.nan]):
        with pytest.raises(CheckFailedError):
            comparison.require_close(torch.tensor(wrong), truth, truth.float(), "the output")


def test_zeros_and_empty_tensors_compare():
    for shape in ((3,), (0, 4)):
        zeros = torch.zeros(shape)
        comparison.require_close(zeros, zeros.double(), zeros, "the output")


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(4, 6),
        lambda: torch.randn(4, 6).t(),
        lambda: torch.randn(4, 1).expand(4, 9),
        lambda: torch.randn(20)[3::4],
        lambda: torch.zeros(0, 7),
        lambda: torch.randn(5).bfloat16(),
        lambda: torch.rand(7) < 0.5,
        lambda: torch.tensor(3),
    ],
)
def test_an_arena_holds_shape_strides_and_values(make):
    tensor = make()
    memory = shared_inputs.SharedInputs([torch.ones(3), tensor])
    raw = memory.raw[1]
    assert (raw.shape, raw.strides) == (tuple(tensor.shape), tuple(tensor.stride()))
    assert memory.mutated() == []
    memory.close()


def test_an_arena_sees_a_single_changed_byte():
    memory = shared_inputs.SharedInputs([torch.ones(3), torch.ones(5)])
    memory._map[memory.first_bytes[1] + 7] ^= 1  # as a worker's mapping would
    assert memory.mutated() == [1]
    memory.close()


@pytest.mark.parametrize(
    "raw",
    [
        RawTensor("float32", (2**40,), (0,), bytes(4)),
        RawTensor("float32", (2, 2), (1, 1), bytes(12)),
        RawTensor("float32", (0, 2**62, 2**62), (1, 1, 1), b""),
    ],
    ids=["expanded", "overlapping", "impossible"],
)
def test_tensors_that_only_claim_their_size_are_refused(raw):
    with pytest.raises(ProtocolError):
        shared_inputs.to_torch(raw)
