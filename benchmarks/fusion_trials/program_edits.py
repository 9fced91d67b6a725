"""Edit generated programs so that their meaning changes."""

import random
from collections.abc import Callable

from benchmarks.fusion_trials.program_seeds import Step

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
