"""Every operator that a pass looks for, in all the ways to call it; and a program for each pass to spell anew.

A spelling is a function of the modules that a program has (`m`), and of the operator's tensors.
"""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import nn

from tests.course_lib.fusion.passes.rewrites import normal

Tensor = torch.Tensor
aten = torch.ops.aten
Spelling = Callable[..., Tensor]


class Parts(nn.Module):
    """The modules of every program."""

    def __init__(self) -> None:
        super().__init__()
        self.gelu, self.gelu_tanh, self.softmax, self.dropout = (
            nn.GELU(),
            nn.GELU("tanh"),
            nn.Softmax(-1),
            nn.Dropout(0.3),
        )
        self.norm, self.linear, self.row_norm = nn.LayerNorm(6, 1e-3), nn.Linear(6, 6), nn.BatchNorm1d(6)
        self.conv, self.image_norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)


SPELLINGS: Mapping[str, Mapping[str, Spelling]] = {
    "add": {
        "operator": lambda m, a, b: a + b,
        "other order": lambda m, a, b: b + a,
        "function": lambda m, a, b: torch.add(a, b),
        "by name": lambda m, a, b: torch.add(other=a, input=b),
        "alpha": lambda m, a, b: torch.add(a, b, alpha=1),
        "method": lambda m, a, b: a.add(b),
        "method by name": lambda m, a, b: a.add(other=b, alpha=1.0),
        "aten": lambda m, a, b: aten.add.Tensor(a, b),
    },
    "mul": {
        "operator": lambda m, a, b: a * b,
        "other order": lambda m, a, b: b * a,
        "function": lambda m, a, b: torch.mul(a, b),
        "long name": lambda m, a, b: torch.multiply(a, other=b),
        "method": lambda m, a, b: a.mul(b),
        "long method": lambda m, a, b: a.multiply(other=b),
    },
    "div": {
        "operator": lambda m, a, b: a / b,
        "function": lambda m, a, b: torch.div(a, other=b),
        "true_divide": lambda m, a, b: torch.true_divide(a, b),
        "divide": lambda m, a, b: torch.divide(a, b),
        "method": lambda m, a, b: a.div(b),
        "long method": lambda m, a, b: a.true_divide(b),
    },
    "matmul": {
        "operator": lambda m, a, b: a @ b,
        "function": lambda m, a, b: torch.matmul(a, other=b),
        "method": lambda m, a, b: a.matmul(b),
        "aten": lambda m, a, b: aten.matmul.default(a, b),
    },
    "transpose": {
        "method": lambda m, a: a.transpose(-1, -2),
        "positive": lambda m, a: a.transpose(2, 3),
        "function": lambda m, a: torch.transpose(a, dim0=-2, dim1=-1),
        "swapaxes": lambda m, a: a.swapaxes(-1, 2),
        "swapdims": lambda m, a: torch.swapdims(a, -1, -2),
        "attribute": lambda m, a: a.mT,
        "permute": lambda m, a: a.permute(0, 1, 3, 2),
        "permute with a tuple": lambda m, a: torch.permute(a, (0, 1, -1, -2)),
        "aten": lambda m, a: aten.transpose.int(a, -1, -2),
    },
    "gelu": {
        "function": lambda m, a: F.gelu(a),
        "by name": lambda m, a: F.gelu(input=a, approximate="none"),
        "tanh": lambda m, a: F.gelu(a, approximate="tanh"),
        "module": lambda m, a: m.gelu(a),
        "module of tanh": lambda m, a: m.gelu_tanh(input=a),
        "aten": lambda m, a: aten.gelu.default(a, approximate="tanh"),
    },
    "softmax": {
        "function": lambda m, a: torch.softmax(a, -1),
        "by name": lambda m, a: torch.softmax(input=a, dim=3),
        "functional": lambda m, a: F.softmax(a, dim=-1),
        "method": lambda m, a: a.softmax(dim=-1),
        "module": lambda m, a: m.softmax(a),
        "special": lambda m, a: torch.special.softmax(a, -1),
        "aten": lambda m, a: aten.softmax.int(a, -1),
    },
    "layer_norm": {
        "module": lambda m, a: m.norm(a),
        "module by name": lambda m, a: m.norm(input=a),
        "functional": lambda m, a: F.layer_norm(a, (6,), m.norm.weight, m.norm.bias, 1e-3),
        "by name": lambda m, a: F.layer_norm(a, eps=1e-3, bias=m.norm.bias, weight=m.norm.weight, normalized_shape=[6]),
        "function": lambda m, a: torch.layer_norm(a, (6,), m.norm.weight, m.norm.bias, 1e-3, False),
        "aten": lambda m, a: aten.layer_norm.default(a, [6], m.norm.weight, m.norm.bias),
    },
    "dropout": {
        "module": lambda m, a: m.dropout(a),
        "functional": lambda m, a: F.dropout(a, 0.3, m.training),
        "by name": lambda m, a: F.dropout(a, training=m.training, p=0.3),
        "function": lambda m, a: torch.dropout(a, 0.3, m.training),
        "function by name": lambda m, a: torch.dropout(a, p=0.3, train=m.training),
        "aten": lambda m, a: aten.dropout.default(a, 0.3, m.training),
    },
    "linear": {
        "module": lambda m, a: m.linear(a),
        "functional": lambda m, a: F.linear(a, m.linear.weight, m.linear.bias),
        "by name": lambda m, a: F.linear(bias=m.linear.bias, weight=m.linear.weight, input=a),
        "aten": lambda m, a: aten.linear.default(a, m.linear.weight, m.linear.bias),
    },
    "conv2d": {
        "module": lambda m, a: m.conv(a),
        "functional": lambda m, a: F.conv2d(a, m.conv.weight, m.conv.bias, padding=1),
        "function": lambda m, a: torch.conv2d(a, m.conv.weight, m.conv.bias, 1, (1, 1)),
        "aten": lambda m, a: aten.conv2d.default(a, m.conv.weight, m.conv.bias, [1, 1], [1, 1]),
    },
}
# Pass -> what it is called with, and a program that it fuses, of the spellings of its operators.
PROGRAMS: Mapping[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "bias_gelu": (
        lambda m, s, x, r, b: s["gelu"](m, s["add"](m, x, b)),
        (normal(4, 6), normal(4, 6), normal(6)),
    ),
    "gelu_tanh": (lambda m, s, x: s["gelu"](m, x), (normal(4, 6),)),
    "gelu_to_relu": (lambda m, s, x: s["gelu"](m, x), (normal(4, 6),)),
    "residual_layer_norm": (
        lambda m, s, x, r, b: s["layer_norm"](m, s["add"](m, x, r)),
        (normal(4, 6), normal(4, 6), normal(6)),
    ),
    "bias_dropout_residual_layer_norm": (
        lambda m, s, x, r, b: s["layer_norm"](m, s["add"](m, s["dropout"](m, s["linear"](m, x)), r)),
        (normal(4, 6), normal(4, 6), normal(6)),
    ),
    "add_scaled": (
        lambda m, s, x, r, b: s["add"](m, x, s["mul"](m, s["div"](m, x, r), 0.5)),
        (normal(4, 6), normal(4, 6) + 9, normal(6)),
    ),
    "matmul_scale": (
        lambda m, s, q: s["div"](m, s["matmul"](m, q, s["transpose"](m, q)), 8.0),
        (normal(2, 3, 24, 4),),
    ),
    "sdpa": (
        lambda m, s, q, k, v: s["matmul"](
            m, s["softmax"](m, s["mul"](m, s["matmul"](m, q, s["transpose"](m, k)), 0.25)), v
        ),
        tuple(normal(2, 3, size, 4) for size in (5, 7, 7)),
    ),
    "conv_batch_norm": (lambda m, s, x: m.image_norm(s["conv2d"](m, x)), (normal(2, 3, 12, 12),)),
    "linear_batch_norm": (lambda m, s, x: m.row_norm(s["linear"](m, x)), (normal(64, 6),)),
}


class Program(nn.Module):
    """A program of a pass, with one operator spelt in a given way and all others in their first."""

    def __init__(self, name: str, operator: str = "", spelling: str = "") -> None:
        super().__init__()
        self.parts = Parts()
        self.function, self.inputs = PROGRAMS[name]
        self.chosen = {one: next(iter(ways.values())) for one, ways in SPELLINGS.items()}
        if operator:
            self.chosen[operator] = SPELLINGS[operator][spelling]

    def forward(self, x: Tensor, r: Tensor | None = None, b: Tensor | None = None) -> Tensor:
        """Compute the program, of as many inputs as it has."""
        return self.function(self.parts, self.chosen, *(x, r, b)[: len(self.inputs)])


def operators_of(name: str) -> list[str]:
    """Return the operators that the program of a pass is made of."""
    used: list[str] = []

    class Noted(dict[str, Spelling]):
        def __getitem__(self, operator: str) -> Spelling:
            used.append(operator)
            return super().__getitem__(operator)

    program = Program(name)
    program.chosen = Noted(program.chosen)
    program(*program.inputs)
    return sorted(set(used))
