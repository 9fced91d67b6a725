"""Programs as people write them are fused, as torch.fx captures them, as torch.export does, and as make_fx does."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from course_lib.fusion import PASSES, fuse
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.passes.sdpa import Sdpa
from tests.drawn import some

KEYS = math.sqrt(2 / math.pi)


class Attention(nn.Module):
    """Attention of one head, with projections, an attention mask and dropout, in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.drop = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16), nn.Dropout(0.1)
        self.register_buffer("mask", torch.ones(16, 16).tril()[None])
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.get_buffer("mask") == 0, float("-inf"))
        return self.drop(F.softmax(scores, dim=-1)) @ v


class Block(nn.Module):
    """A layer with dropout, residual and LayerNorm, in training or evaluation."""

    def __init__(self, training: bool) -> None:
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(16, 16), nn.LayerNorm(16), nn.Dropout(0.1)
        self.train(training)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.drop(self.linear(x)))


class Projections(nn.Module):
    """Three projections of one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.q(x)) * torch.relu(self.k(x)) + torch.sin(self.v(x))


class Functional(nn.Module):
    """Residual and LayerNorm by functions with keywords."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.weight, self.bias = nn.Parameter(torch.rand(16)), nn.Parameter(torch.rand(16))

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear(x)
        return F.layer_norm(input=h + x, normalized_shape=(16,), weight=self.weight, bias=self.bias, eps=1e-12)


def _variance(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    mean = torch.mean(input=x, dim=-1, keepdim=True)
    variance = torch.var(input=x, dim=-1, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(input=variance + 1e-5) * w + b


def _squares(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    u = x.mean(-1, keepdim=True)
    s = (x - u).pow(2).mean(-1, keepdim=True)
    return w * ((x - u) / torch.sqrt(s + 1e-12)) + b


def _centred(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    d = x - x.mean(dim=-1, keepdim=True)
    return d * torch.rsqrt((d * d).mean(dim=-1, keepdim=True) + 1e-6) * w + b


def _stable_softmax(x: Tensor) -> Tensor:
    e = torch.exp(x - x.max(dim=-1, keepdim=True).values)
    return e / e.sum(dim=-1, keepdim=True)


def _written_gelu(bias: Tensor, y: Tensor) -> Tensor:
    x = bias + y
    return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))


def _gpt2_gelu(x: Tensor, b: Tensor) -> Tensor:
    x = x + b
    return 0.5 * x * (1.0 + torch.tanh(KEYS * (x + 0.044715 * torch.pow(x, 3.0))))


def _exact_gelu(x: Tensor, b: Tensor) -> Tensor:
    h = x + b
    return h * 0.5 * (1.0 + torch.erf(h / math.sqrt(2.0)))


def _prescaled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q = q * (q.shape[-1] ** -0.5)
    return (q @ k.transpose(-1, -2)).softmax(dim=-1) @ v


def _masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(k.size(-1))
    return torch.matmul(F.softmax(scores.masked_fill(mask == 0, -1e9), dim=-1), v)


def _added(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(8)
    return torch.matmul(nn.functional.softmax(scores + mask, dim=-1), v)


def _einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.einsum("nqhd,nkhd->nhqk", [q, k])
    return torch.einsum("nhql,nlhd->nqhd", [torch.softmax(scores / (8**0.5), dim=3), v])


def _draw(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(len(shapes))
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


THREE, FOUR, BOTH = _draw(*[(4, 16, 8)] * 3), _draw(*[(2, 4, 16, 8)] * 3), _draw((16, 16), (16,))
LOWER = torch.ones(16, 16).tril()
NORM = _draw((4, 16), (16,), (16,))
SDPA = Sdpa(every_row_sees_something=True)
Case = tuple[Callable[..., Any], tuple[Tensor, ...], str | GraphPass]
# Each program with its inputs, and the pass that has to fuse it.
PROGRAMS: dict[str, Case] = {
    "root of a size": (lambda q, k, v: F.softmax(q @ k.mT / math.sqrt(q.size(-1)), -1) @ v, FOUR, SDPA),
    "power of a shape": (lambda q, k, v: torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v, FOUR, SDPA),
    "power of a size": (lambda q, k, v: (q @ k.transpose(2, 3) / q.size(3) ** 0.5).softmax(-1) @ v, FOUR, SDPA),
    "scaled query": (_prescaled, FOUR, SDPA),
    "filled with a number": (_masked, (*FOUR, LOWER), SDPA),
    "inverted mask": (lambda q, k, v, m: (q @ k.mT).masked_fill(~m, -math.inf).softmax(-1) @ v,
                      (*FOUR, LOWER.bool()), SDPA),
    "added mask": (_added, (*FOUR, (LOWER - 1)[None, None]), SDPA),
    "einsum": (_einsum, _draw(*[(2, 16, 4, 8)] * 3), SDPA),
    "three dimensions": (lambda q, k, v: (q @ k.mT * q.size(-1) ** -0.5).softmax(dim=-1) @ v, THREE, SDPA),
    "bmm": (lambda q, k, v: torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(8), -1), v), THREE, SDPA),
    "attention": (Attention(), _draw((2, 16, 16)), SDPA),
    "projections": (Projections(), _draw((256, 16)), "qkv_merge"),
    "bias and GELU": (lambda x, b: F.gelu(x + b), BOTH, "bias_gelu"),
    "bias and GELU by tanh": (lambda x, b: F.gelu(torch.add(x, b), approximate="tanh"), BOTH, "bias_gelu"),
    "bias and the GELU of GPT-2": (_gpt2_gelu, BOTH, "bias_gelu"),
    "bias and the GELU of Megatron": (_written_gelu, (BOTH[1], BOTH[0]), "bias_gelu"),
    "bias and GELU by erf": (_exact_gelu, BOTH, "bias_gelu"),
    "GELU as a product": (lambda x: x * (0.5 * (1.0 + torch.erf(x / 1.4142135623730951))), NORM[:1], "formulas"),
    "GELU with a cube": (lambda x: 0.5 * x * (1 + torch.tanh(KEYS * (x + 0.044715 * x**3))), NORM[:1], "formulas"),
    "SiLU": (lambda x: x * torch.sigmoid(x), NORM[:1], "formulas"),
    "gated SiLU": (lambda x, g: x * (F.sigmoid(g) * g), (NORM[0], NORM[0] + 1), "formulas"),
    "LayerNorm with keyword inputs": (_variance, NORM, "formulas"),
    "LayerNorm of squares": (_squares, NORM, "formulas"),
    "LayerNorm with rsqrt": (_centred, NORM, "formulas"),
    "softmax": (_stable_softmax, NORM[:1], "formulas"),
    "a residual": (Functional(), NORM[:1], "residual_layer_norm"),
    "dropout in evaluation": (Block(False), NORM[:1], "bias_dropout_residual_layer_norm"),
    "dropout in training": (Block(True), NORM[:1], "bias_dropout_residual_layer_norm"),
    "convolution": (nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU()).eval(),
                    _draw((2, 3, 9, 9)), "conv_batch_norm"),
    "linear": (nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval(), _draw((200, 4)), "linear_batch_norm"),
    "scaled scores": (lambda a, b: (a @ b) * 0.125, _draw((64, 8), (8, 64)), "matmul_scale"),
}  # fmt: skip
ALL_EXACT = [SDPA if name == "sdpa" else name for name, cls in PASSES.items() if cls.level == "exact"]
# `make_fx` leaves nothing of dropout in evaluation, draws by other operators in training, and permutes for einsum.
LOST_IN_ATEN = ("dropout in evaluation", "dropout in training", "einsum")
IN_ATEN = [name for name in PROGRAMS if name not in LOST_IN_ATEN]


class _Program(nn.Module):
    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__()
        self.run = run

    def forward(self, *inputs: Tensor) -> Any:
        return self.run(*inputs)


def _objection(name: str, program: Any) -> str:
    """Return what is wrong with the fused program, or an empty text."""
    run, inputs, wanted = PROGRAMS[name]
    is_default = wanted in ("bias_gelu", "formulas", "residual_layer_norm", "bias_dropout_residual_layer_norm")
    result = fuse(program, inputs, None if is_default else [wanted, "dead_code"], check=False)
    by = wanted if isinstance(wanted, str) else wanted.name
    if result.num_matches_by_pass[by] != 1:
        return result.explain()
    if name != "dropout in training":
        torch.testing.assert_close(result.graph_module(*inputs), run(*inputs), rtol=1e-4, atol=1e-5)
    return ""


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_fused_as_torch_fx_captures_it(name: str) -> None:
    assert _objection(name, PROGRAMS[name][0]) == ""


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_fused_as_torch_export_captures_it(name: str) -> None:
    run, inputs, _ = PROGRAMS[name]
    assert _objection(name, torch.export.export(run if isinstance(run, nn.Module) else _Program(run), inputs)) == ""


@pytest.mark.parametrize("name", IN_ATEN)
def test_it_is_fused_as_make_fx_captures_it(name: str) -> None:
    run, inputs, _ = PROGRAMS[name]
    assert _objection(name, make_fx(run)(*inputs)) == ""


@pytest.mark.parametrize("name", some(IN_ATEN, 10, name="programs in core ATen"))
def test_it_is_fused_in_the_core_operators_of_aten(name: str) -> None:
    run, inputs, _ = PROGRAMS[name]
    exported = torch.export.export(run if isinstance(run, nn.Module) else _Program(run), inputs)
    assert _objection(name, exported.run_decompositions()) == ""


@pytest.mark.parametrize("passes", [None, ALL_EXACT], ids=["default", "all"])
def test_a_second_fuse_of_the_result_changes_nothing(passes: list[str | GraphPass] | None) -> None:
    for name in some(list(PROGRAMS), 12, name="programs that are fused twice"):  # the others in other runs
        run, inputs, _ = PROGRAMS[name]
        once = fuse(run, inputs, passes, check=False)
        again = fuse(once.graph_module, inputs, passes, check=False)
        assert (again.num_matches, again.graph_module.code) == (0, once.graph_module.code), name
