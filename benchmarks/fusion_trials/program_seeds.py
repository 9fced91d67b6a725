"""Define the seeds of generated programs, which a pass must fuse, and the spellings of each of their steps."""

import random
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
    rows: tuple[int, ...] = (7, 9, 16)  # more than columns, so that scaling a factor pays
    batches: tuple[tuple[int, ...], ...] = ((), (1,), (2,))
    modes: tuple[str, ...] = ("eval", "train")


MANY = (40, 64)  # so that computing with the weights once more pays
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
    Seed("matmul_scale", (Step("p1", "outer", ("x", "r")), Step("y", "divide", ("p1",)))),
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
