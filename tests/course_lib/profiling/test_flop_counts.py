"""Floating-point operations counted are those counted by hand."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.profiling import count_flops


def attention() -> torch.Tensor:
    """Attend with one batch, two heads, eight positions and a head size of four."""
    return F.scaled_dot_product_attention(*(torch.zeros(1, 2, 8, 4) for _ in range(3)))


BY_HAND = {
    "matrix product": (lambda: torch.zeros(2, 3) @ torch.zeros(3, 4), 2 * 2 * 3 * 4),
    "linear with bias": (lambda: F.linear(torch.zeros(5, 3), torch.zeros(4, 3), torch.zeros(4)), 2 * 5 * 3 * 4),
    "batch of products": (lambda: torch.zeros(7, 2, 3) @ torch.zeros(7, 3, 4), 7 * 2 * 2 * 3 * 4),
    "convolution": (lambda: F.conv2d(torch.zeros(1, 2, 6, 6), torch.zeros(4, 2, 3, 3)), 2 * 4 * 16 * 2 * 9),
    "attention": (attention, 2 * (2 * 2 * 8 * 8 * 4)),
    "elementwise": (lambda: torch.relu(torch.zeros(100)) + 1, 0),
}


@pytest.mark.parametrize("case", BY_HAND)
@pytest.mark.parametrize("around", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_operations_are_those_counted_by_hand(case, around):
    program, expected = BY_HAND[case]
    with around():
        counted = count_flops(program)

    assert counted.total == expected
    assert sum(counted.by_operator.values()) == expected


def test_a_whole_layer_that_is_one_kernel_in_evaluation_is_counted_all_the_same():
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.zeros(3, 5, 16)
    products = 2 * 15 * 16 * (3 * 16 + 16 + 32 + 32)
    attention = 2 * (2 * 3 * 2 * 5 * 5 * 8)
    was_enabled = torch.backends.mha.get_fastpath_enabled()

    with torch.no_grad():
        assert count_flops(layer, x).total == products + attention
    assert torch.backends.mha.get_fastpath_enabled() == was_enabled
