"""Hidden checks and controls of exercise 08.5."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from autograder.exercises.aot_autograd import backward_by_hand as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.callable import Case

gradient_right, inputs = visible.gradient_right, visible.inputs


def _odd(draw: Draw) -> Iterator[Case]:
    for rows, width in ((1, 3), (129, 5), (2, 127)):
        yield inputs(draw, rows, width)


def _single(draw: Draw) -> Iterator[Case]:
    yield inputs(draw, 6, 32, dtype=torch.float32)


def _extreme_masks(draw: Draw) -> Iterator[Case]:
    yield inputs(draw, 4, 8, share=1.0)
    yield inputs(draw, 4, 8, share=0.05)


REFERENCE = '''
def backward(grad, x, bias, residual, kept, weight):
    """Gradients by x, bias, residual, weight and shift."""
    h = (x + bias) * kept + residual
    centred = h - h.mean(-1, keepdim=True)
    root = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
    normed = centred * root
    g = grad * weight
    by_h = root * (g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True))
    by_x = by_h * kept
    return by_x, by_x.sum(0), by_h, (grad * normed).sum(0), grad.sum(0)
'''
BY_AUTOGRAD = '''
def backward(grad, x, bias, residual, kept, weight):
    """Autograd instead of a formula."""
    leaves = [t.detach().clone().requires_grad_() for t in (x, bias, residual, weight, torch.zeros_like(weight))]
    with torch.enable_grad():
        h = (leaves[0] + leaves[1]) * kept + leaves[2]
        y = torch.nn.functional.layer_norm(h, h.shape[-1:], leaves[3], leaves[4])
    return torch.autograd.grad(y, leaves, grad)
'''
BY_VJP = '''
def backward(grad, x, bias, residual, kept, weight):
    """A transform instead of a formula, on arithmetic that is allowed."""

    def forward(x, bias, residual, weight, shift):
        h = (x + bias) * kept + residual
        centred = h - h.mean(-1, keepdim=True)
        root = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
        return centred * root * weight + shift

    _, pull = torch.func.vjp(forward, x, bias, residual, weight, weight * 0)
    return pull(grad)
'''

ALL = range(5)
HIDDEN = HiddenPart(
    checks=(
        Check("odd sizes", "odd sizes", 1.8, gradient_right(ALL, _odd)),
        Check("single precision", "precision", 1.6, gradient_right(ALL, _single)),
        Check("nothing dropped, nearly everything dropped", "masks", 1.4, gradient_right(ALL, _extreme_masks)),
    ),
    controls=(
        Control("reference", REFERENCE, 12),
        Control("autograd", BY_AUTOGRAD, 0),
        Control("vjp", BY_VJP, 0),
    ),
    right_here=dict.fromkeys(("wrong in the first output only", "NaN"), "each gradient has a check of its own"),
)
