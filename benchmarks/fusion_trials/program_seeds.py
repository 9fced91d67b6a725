"""Define the seeds of generated programs, the spellings of each step, and edits that change the meaning of a program.

A pass must fuse each seed.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NAMES = ("x", "b", "r", "m")  # inputs of every program: rows, a bias, a residual, a matrix


@dataclass(frozen=True)
class Step:
    """Hold one line of a program: `{target} = {operator}({operands})`."""

    target: str
    operator: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Seed:
    """Hold a program that a pass must fuse."""

    name: str  # that of the pass
    steps: tuple[Step, ...]
    rows: tuple[int, ...] = (7, 9, 16)
    batches: tuple[tuple[int, ...], ...] = ((), (1,), (2,))
    modes: tuple[str, ...] = ("eval", "train")


WIDE = (16, 24)  # so many rows that scaling a factor moves fewer bytes than scaling the product
MANY = (40, 64)  # so many rows that additional computation with the weights pays
_Q, _K = Step("q1", "project_q", ("x",)), Step("k1", "project_k", ("x",))
_FOLDS: dict[str, Any] = {"rows": MANY, "batches": ((),), "modes": ("eval",)}
SEEDS = (
    Seed("bias_gelu", (Step("s1", "add", ("x", "b")), Step("y", "gelu", ("s1",)))),
    Seed("bias_gelu", (Step("p1", "matmul", ("x", "m")), Step("s1", "add", ("p1", "b")), Step("y", "gelu", ("s1",)))),
    Seed("residual_layer_norm", (Step("s1", "add", ("x", "r")), Step("y", "norm", ("s1",)))),
    Seed(
        "bias_dropout_residual_layer_norm",
        (
            Step("s1", "add", ("x", "b")),
            Step("d1", "dropout", ("s1",)),
            Step("t1", "add", ("d1", "r")),
            Step("y", "norm", ("t1",)),
        ),
    ),
    Seed(
        "bias_dropout_residual_layer_norm",
        (Step("d1", "dropout_of_linear", ("x",)), Step("t1", "add", ("d1", "r")), Step("y", "norm", ("t1",))),
    ),
    Seed(
        "bias_dropout_residual_layer_norm",
        (Step("s1", "add", ("x", "b")), Step("t1", "add", ("s1", "r")), Step("y", "norm", ("t1",))),
    ),
    Seed("add_scaled", (Step("p1", "mul", ("x", "r")), Step("y", "add", ("p1", "r")))),
    Seed("add_scaled", (Step("q1", "div", ("x", "r")), Step("z1", "scale", ("q1",)), Step("y", "add", ("z1", "x")))),
    Seed("matmul_scale", (Step("p1", "outer", ("x", "r")), Step("y", "divide", ("p1",))), WIDE),
    Seed("qkv_merge", (_Q, _K, Step("v1", "project_v", ("x",)), Step("y", "three", ("q1", "k1", "v1"))), MANY),
    Seed("qkv_merge", (_Q, Step("o1", "project_other", ("r",)), _K, Step("y", "three", ("q1", "k1", "o1"))), MANY),
    Seed("qkv_merge", (Step("e1", "project_e", ("x",)), Step("f1", "project_f", ("x",)),
                       Step("y", "three", ("e1", "f1", "r"))), MANY),
    Seed("layer_norm_to_batch_norm", (Step("n1", "norm_module", ("x",)), Step("y", "scale", ("n1",)))),
    Seed("layer_norm_to_batch_norm", (Step("s1", "add", ("x", "r")), Step("y", "norm_module", ("s1",)))),
    Seed("linear_batch_norm", (_Q, Step("y", "batch_norm", ("q1",))), **_FOLDS),
    Seed("linear_batch_norm", (Step("n1", "batch_norm", ("x",)), Step("y", "project_q", ("n1",))), **_FOLDS),
    Seed("conv_batch_norm", (Step("i1", "image", ("x",)), Step("c1", "convolve", ("i1",)),
                             Step("y", "image_norm", ("c1",))), **_FOLDS),
)  # fmt: skip


def _projections(name: str) -> tuple[str, ...]:
    return (
        f"self.{name}({{0}})",
        f"self.{name}(input={{0}})",
        f"F.linear({{0}}, self.{name}.weight, self.{name}.bias)",
        f"F.linear(bias=self.{name}.bias, weight=self.{name}.weight, input={{0}})",
    )


def _batch_norms(name: str) -> tuple[str, ...]:
    statistics = f"self.{name}.running_mean, self.{name}.running_var"
    return (
        f"self.{name}({{0}})",
        f"F.batch_norm({{0}}, {statistics}, self.{name}.weight, self.{name}.bias, False, 0.2, 1e-3)",
        f"F.batch_norm({{0}}, {statistics}, bias=self.{name}.bias, weight=self.{name}.weight)",
    )


_SPELLINGS: dict[str, tuple[str, ...]] = {
    **{f"project_{name}": _projections(name) for name in ("q", "k", "v", "e", "f", "other")},
    "three": (
        "{0} * {1} - torch.tanh({2})",
        "torch.softmax({0} @ ({1}).transpose(-1, -2), -1) @ ({2})",
        "torch.cat([{0}, {1}], -1).sum(-1, keepdim=True) * {2}",
        "({0}).unflatten(-1, (1, -1)).transpose(-2, -3).sum(-3) * 2 + ({1}) - ({2}).mean()",
    ),
    "norm_module": ("self.norm({0})", "self.norm(input={0})"),
    "batch_norm": _batch_norms("batch_norm"),
    "image_norm": _batch_norms("image_norm"),
    "image": ("({0}).reshape(1, 1, *self.two_dimensions)", "({0})[None, None]", "({0}).unsqueeze(0).unsqueeze(0)"),
    "convolve": (
        "self.convolution({0})",
        "F.conv2d({0}, self.convolution.weight, self.convolution.bias, padding=1)",
        "F.conv2d(input={0}, bias=self.convolution.bias, weight=self.convolution.weight, padding=(1, 1))",
    ),
    "add": (
        "{0} + {1}",
        "{1} + {0}",
        "torch.add({0}, {1})",
        "torch.add(input={1}, other={0})",
        "torch.add({1}, {0}, alpha=1)",
        "torch.add({0}, other={1}, alpha=1.0)",
        "({0}).add({1})",
        "({1}).add(other={0})",
    ),
    "mul": ("{0} * {1}", "{1} * {0}", "torch.mul({0}, {1})", "({0}).multiply({1})", "torch.multiply({1}, other={0})"),
    "div": ("{0} / {1}", "torch.div({0}, {1})", "({0}).div({1})", "torch.true_divide({0}, {1})"),
    "scale": ("{0} * 0.5", "0.5 * ({0})", "torch.mul({0}, 0.5)", "({0}).mul(0.5)"),
    "divide": ("({0}) / 8.0", "torch.div({0}, 8.0)", "({0}).div(8.0)", "({0}) * 0.125", "0.125 * ({0})"),
    "matmul": ("{0} @ {1}", "torch.matmul({0}, {1})", "({0}).matmul({1})"),
    "outer": ("{0} @ ({1}).transpose(-1, -2)", "torch.matmul({0}, torch.transpose({1}, -2, -1))"),
    "gelu": (
        "F.gelu({0})",
        "F.gelu(input={0})",
        'F.gelu({0}, approximate="none")',
        'F.gelu({0}, approximate="tanh")',
        "self.gelu({0})",
        "self.gelu_tanh({0})",
    ),
    "norm": (
        "self.norm({0})",
        "F.layer_norm({0}, self.shape, self.norm.weight, self.norm.bias, 1e-3)",
        "F.layer_norm({0}, normalized_shape=self.shape, bias=self.norm.bias, weight=self.norm.weight)",
        "torch.layer_norm({0}, self.shape, self.norm.weight, self.norm.bias)",
    ),
    "dropout": (
        "self.dropout({0})",
        "F.dropout({0}, 0.3, self.training)",
        "F.dropout({0}, p=0.3, training=self.training)",
        "torch.dropout({0}, 0.3, self.training)",
    ),
    "dropout_of_linear": (
        "self.dropout(self.linear({0}))",
        "self.dropout(F.linear({0}, self.linear.weight, self.linear.bias))",
        "F.dropout(self.linear(input={0}), 0.3, training=self.training)",
    ),
}


def spell(step: Step, draw: random.Random) -> str:
    """Return one line for a step, in one of its spellings."""
    return f"{step.target} = {draw.choice(_SPELLINGS[step.operator]).format(*step.operands)}"


Edit = Callable[[list[str], tuple[Step, ...], random.Random], list[str]]


def _after_first(statement: str) -> Edit:
    """Put a statement after the first step."""
    return lambda lines, steps, draw: [lines[0], statement, *lines[1:]]


def _at_the_end(statement: str) -> Edit:
    return lambda lines, steps, draw: [*lines, statement]


def _respelt(operator: str, *spellings: str) -> Edit:
    """Spell the first step with an operator differently; programs without it are left as they are."""

    def edit(lines: list[str], steps: tuple[Step, ...], draw: random.Random) -> list[str]:
        for number, step in enumerate(steps):
            if step.operator == operator:
                new = f"{step.target} = {draw.choice(spellings).format(*step.operands)}"
                return [*lines[:number], new, *lines[number + 1 :]]
        return lines

    return edit


def _both_returned(lines: list[str], steps: tuple[Step, ...], draw: random.Random) -> list[str]:
    return [*lines, f"return y, {draw.choice(steps).target}"]


def _read_twice(lines: list[str], steps: tuple[Step, ...], draw: random.Random) -> list[str]:
    return [*lines, f"y = y.sum() + {draw.choice(steps).target}"]


def _computed_twice(lines: list[str], steps: tuple[Step, ...], draw: random.Random) -> list[str]:
    between = draw.choice(("", "x = x * 2", "x.mul_(2)", "r[0].add_(1)"))
    return [*lines, "first = y", between, *lines, "y = y * first"]


def _result_changed(lines: list[str], steps: tuple[Step, ...], draw: random.Random) -> list[str]:
    number = draw.randrange(len(lines))
    target = steps[number].target
    return [*lines[: number + 1], draw.choice((f"{target}.mul_(2)", f"{target}[0].add_(1)")), *lines[number + 1 :]]


EDITS: dict[str, Edit] = {
    "factor in the sum": _respelt("add", "torch.add({0}, {1}, alpha=2)", "({0}).add({1}, alpha=-1)"),
    "difference": _respelt("add", "{0} - {1}", "torch.sub({0}, {1})"),
    "sum in place": _respelt("add", "({0}).add_({1})", "torch.add({0}, {1}, out=torch.empty_like(r))"),
    "sum with a number": _respelt("add", "{0} + 1.0", "2 + ({0})"),
    "sum with one row": _respelt("add", "{0} + r[..., :1, :]", "{0} + r[..., :1]", "{0} + b.sum()"),
    "sum in another type": _respelt("add", "({0}).float() + ({1}).float()", "({0} + ({1}).float())"),
    "transposed sum": _respelt("add", "({0} + r.transpose(-1, -2).contiguous().transpose(-1, -2))"),
    "norm over two dimensions": _respelt("norm", "F.layer_norm({0}, self.two_dimensions)"),
    "norm without affine": _respelt("norm", "F.layer_norm({0}, self.shape)", "F.layer_norm({0}, self.shape, b)"),
    "norm with other weights": _respelt("norm", "F.layer_norm({0}, self.shape, b, self.norm.weight, 0.5)"),
    "relu instead": _respelt("gelu", "F.relu({0})", "F.silu({0})", "F.gelu({0}) * ({0})"),
    "dropped always": _respelt("dropout", "F.dropout({0}, 0.3, True)", "F.dropout({0})"),
    "dropped never": _respelt("dropout", "F.dropout({0}, 0.3, False)", "F.dropout({0}, 0.0)", "F.dropout({0}, 0)"),
    "dropped all": _respelt("dropout", "F.dropout({0}, 1.0, True)"),
    "dropped in place": _respelt("dropout", "F.dropout({0}, 0.3, self.training, True)"),
    "dropped residual": _respelt("dropout", "F.dropout({0} + r, 0.3, self.training)"),
    "rounded quotient": _respelt("div", 'torch.div({0}, {1}, rounding_mode="floor")', "{1} / {0}"),
    "rounded scale": _respelt("divide", 'torch.div({0}, 0.5, rounding_mode="trunc")', "({0}) / b.sum()", "({0}) * 0"),
    "other scale": _respelt("scale", "({0}) * b", "({0}) * True", "({0}) * -0.0"),
    "same projection twice": _respelt("project_k", "self.q({0})"),
    "projection of another input": _respelt("project_k", "self.k(r)", "self.k({0} * 2)"),
    "projection with a hook": _respelt("project_k", "self.hooked({0})"),
    "frozen projection": _respelt("project_k", "self.frozen({0})"),
    "projection without bias": _respelt("project_k", "self.e({0})", "F.linear({0}, self.k.weight)"),
    "projection with computed weights": _respelt("project_k", "F.linear({0}, self.k.weight * 2, self.k.bias)"),
    "projection of another type": _respelt("project_k", "F.linear(({0}).float(), self.k.weight.float())"),
    "projection in place": _respelt("project_q", "self.q({0}).mul_(2)", "self.q({0}).t_()"),
    "projections flattened": _respelt("three", "(({0}).view(-1) * ({1}).reshape(-1)).sum() - {2}"),
    "projections laid out": _respelt("three", "{0} * ({1}).stride(-2) - {2}", "{0}.contiguous() * {1}.is_contiguous()"),
    "strides of projections kept": _respelt("three", "torch.empty_like({0}).copy_({1}) - {2}", "({0}).detach()"),
    "a weight changes between": _after_first("self.k.weight.data.mul_(1.5)"),
    "a bias changes between": _after_first("self.k.bias.data.add_(1)"),
    "another norm in between": _respelt("norm_module", "self.norm(self.norm({0}))", "self.norm({0} * self.norm.bias)"),
    "norm by its function": _respelt("norm_module", "F.layer_norm({0}, self.shape, self.norm.weight, self.norm.bias)"),
    "norm of one row": _respelt("norm_module", "self.norm(({0})[..., :1, :])"),
    "statistics of the batch": _respelt("batch_norm", "F.batch_norm({0}, None, None, b, b, True)"),
    "statistics that are updated": _respelt(
        "batch_norm", "F.batch_norm({0}, self.batch_norm.running_mean, self.batch_norm.running_var, b, b, True)"
    ),
    "statistics without affine": _respelt(
        "batch_norm", "F.batch_norm({0}, self.batch_norm.running_mean, self.batch_norm.running_var)"
    ),
    "image statistics of the batch": _respelt("image_norm", "F.batch_norm({0}, None, None, b[:2], b[:2], True)"),
    "convolution with reflected borders": _respelt(
        "convolve", "F.conv2d(F.pad({0}, (1, 1, 1, 1), 'reflect'), self.convolution.weight)"
    ),
    "strided convolution": _respelt("convolve", "F.conv2d({0}, self.convolution.weight, None, 2, 1, 1, 1)"),
    "operand changes": _after_first("x.mul_(2)"),
    "residual changes": _after_first("r.add_(1)"),
    "a view of an operand changes": _after_first("x.view(-1)[0:2].zero_()"),
    "the bias changes": _after_first("b.sub_(1)"),
    "an operand changes afterwards": _at_the_end("x.mul_(2)"),
    "noise between": _after_first("noise = torch.rand_like(r); r = r + noise"),
    "another dropout between": _after_first("r = F.dropout(r, 0.3, True)"),
    "an intermediate value is returned": _both_returned,
    "an intermediate value is read twice": _read_twice,
    "computed twice": _computed_twice,
    "an intermediate value changes": _result_changed,
}
