"""Programs that drop by different operators drop the same elements under one seed."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.kernels import bias_dropout_residual_layer_norm
from course_lib.kernels.replayed_draws import ReplayedDraws

P = 0.3
TOLERANCE = 1e-12  # in fp64
ONE, ZERO = torch.ones(8, dtype=torch.float64), torch.zeros(8, dtype=torch.float64)


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)


def under(seed, function, *inputs):
    """Return the output and the gradients by the inputs."""
    leaves = [i.clone().requires_grad_() for i in inputs]
    with ReplayedDraws(seed):
        output = function(*leaves)
    return [output.detach(), *torch.autograd.grad(output.square().sum(), leaves)]


def agree(found, expected):
    return all(torch.allclose(f, e, atol=TOLERANCE, rtol=0) for f, e in zip(found, expected, strict=True))


PAIRS = {
    "a fused block end": (
        lambda x: F.layer_norm(F.dropout(x + 1, P) + 2 * x, (8,), ONE, ZERO),
        lambda x: bias_dropout_residual_layer_norm(x, ONE, 2 * x, ONE, ZERO, P, True, 1e-5),
    ),
    "attention": (
        lambda x: F.dropout(torch.softmax(x @ x.mT / 8**0.5, -1), P) @ x,
        lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=P),
    ),
    "PyTorch's own fused dropout": (lambda x: F.dropout(x, P), lambda x: torch.native_dropout(x, P, True)[0]),
    "another shape with the same elements": (
        lambda x: F.dropout(x, P),
        lambda x: F.dropout(x.flatten(0, 1), P).view(x.shape),
    ),
    "two draws in a row": (
        lambda x: F.dropout(x, P) * F.dropout(x, P),
        lambda x: F.dropout(x, P) * torch.native_dropout(x, P, True)[0],
    ),
}


@pytest.mark.parametrize(("plain", "fused"), PAIRS.values(), ids=PAIRS)
def test_two_spellings_drop_the_same_elements(plain, fused):
    x = drawn(2, 3, 8)

    assert agree(under(5, fused, x), under(5, plain, x))
    assert not agree(under(6, fused, x), under(5, plain, x))


def test_draws_of_one_program_differ():
    x = drawn(4, 64)

    with ReplayedDraws(1):
        first, second = F.dropout(x), F.dropout(x)

    assert not torch.equal(first, second)


def test_the_rate_is_the_programs_own():
    x = torch.ones(200, 100)

    for p in (0.1, 0.5, 0.9):
        with ReplayedDraws(2):
            kept = F.dropout(x, p)
        assert abs(float((kept == 0).double().mean()) - p) < 0.02  # 6 standard deviations of 20,000 draws


def test_other_random_numbers_are_left_alone():
    torch.manual_seed(0)
    expected = torch.rand(3), torch.randint(9, (4,))
    torch.manual_seed(0)

    with ReplayedDraws(3):
        found = torch.rand(3), torch.randint(9, (4,))

    assert all(map(torch.equal, found, expected))
