"""Hidden checks and controls of exercise 12.7."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.quality.tensor_changes import CALLABLE
from autograder.exercises.triton_kernels.block_end_forward import NAMES, block_end
from autograder.exercises.triton_kernels.block_end_operator import (
    by_name,
    derived,
    forms_hold,
    fresh,
    sized,
    views,
)
from autograder.host.checks.function_checks import agrees
from autograder.host.exercise import Check, HiddenPart

ANSWERS = Answers(__name__)
FORWARD = "launcher('add_norm')(x, bias, residual, weight, shift, p, seed, eps)"
BY_H = "by_h = grad_h + rstd * (g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True))"

HIDDEN = HiddenPart(
    checks=(
        Check("odd sizes", "odd sizes", 0.25, by_name(agrees(block_end, sized((1, 1), (2, 129), (3, 127)), NAMES))),
        Check(
            "gradients through forward's mask",
            "gradients",
            1,
            derived(sized((6, 31), p=0.5)),
        ),
        Check("the form for other sizes", "declared form", 0.5, forms_hold(sized((1, 1), (2, 65)), views)),
        Check("inputs untouched, outputs of their own", "memory", 0.5, fresh(sized((4, 16)))),
    ),
    equivalent={
        "rstd = torch.rsqrt(h.var(-1, keepdim=True, correction=0) + eps): -1 -> 1": "h is a matrix",
        "normed = (h - h.mean(-1, keepdim=True)) * rstd: -1 -> 1": "h is a matrix",
        f"{BY_H}: -1 -> 1": "h is a matrix",
        "uniform_numbers(seed, at) >= p -> uniform_numbers(seed, at) > p": "numbers of 31 bits hardly equal p",
        "return globals()[name] -> return None": "the worker gives a launcher of its own",
    },
    controls=(
        ANSWERS.reference(6),
        ANSWERS.file("the dispatcher's library", 5.5),
        ANSWERS.file("autograd in backward", 4.5),
        ANSWERS.edited(
            "dropped by where",
            6,
            ("(x + bias) * factors(x, p, seed)", "torch.where(factors(x, p, seed) == 0, 0.0, (x + bias) / (1 - p))"),
        ),
        ANSWERS.edited(
            "forms by empty",
            6,
            (
                "(x.new_empty(x.shape), x.new_empty(x.shape))",
                "tuple((torch.empty(x.shape, dtype=x.dtype, device=x.device) for _ in range(2)))",
            ),
        ),
        ANSWERS.edited(
            "forms by empty_like",
            6,
            (
                "(x.new_empty(x.shape), x.new_empty(x.shape))",
                "(torch.empty_like(x).new_empty(x.shape), torch.zeros(x.shape, dtype=x.dtype, device=x.device))",
            ),
        ),
        ANSWERS.edited(
            "norm by hand",
            6,
            (
                "F.layer_norm(h, h.shape[-1:], weight, shift, eps)",
                "(h - h.mean(-1)[:, None]) * torch.rsqrt(h.var(-1, correction=0)[:, None] + eps) * weight + shift",
            ),
        ),
        ANSWERS.edited("keywords saved", 6, ("ctx.rest = inputs[5:]", "ctx.rest = (inputs[5], inputs[6], inputs[7])")),
        ANSWERS.edited(
            "sums by axis name",
            6,
            ("grad_x.sum(0)", "grad_x.sum(dim=0)"),
            ("grad_y.sum(0)", "torch.sum(grad_y, dim=0)"),
        ),
        ANSWERS.file("a plain function", 0),
        ANSWERS.file("no derivative", 3),
        ANSWERS.edited("another name", 0, ("lesson12::add_norm", "lesson12::block_end")),
        ANSWERS.edited("triton without asking", 0.5, ("if triton_runs_on(x):", "if True:")),
        ANSWERS.edited("no form", 5, ("operator.register_fake(forms)\n", "")),
        ANSWERS.edited(
            "strides of its arguments",
            3.6,
            (
                "(residual + (x + bias) * factors(x, p, seed)).contiguous()",
                "residual + (x + bias) * factors(x, p, seed)",
            ),
        ),
        ANSWERS.edited(
            "forms in float32",
            3.6,
            ("(x.new_empty(x.shape), x.new_empty(x.shape))", "(torch.empty(x.shape), torch.empty(x.shape))"),
        ),
        ANSWERS.edited("the bias added in place", 0.5, ("(x + bias) *", "x.add_(bias) *")),
        ANSWERS.edited(
            "writes while nothing is differentiated",
            3.6,
            ("    h = (", "    if p > 0 and (not x.requires_grad):\n        x = x.add_(bias) - bias\n    h = ("),
        ),
        ANSWERS.edited(
            "form of x's strides",
            3.6,
            ("(x.new_empty(x.shape), x.new_empty(x.shape))", "(torch.empty_like(x), torch.empty_like(x))"),
        ),
        ANSWERS.edited(
            "form of one row",
            3.6,
            ("(x.new_empty(x.shape), x.new_empty(x.shape))", "(x.new_empty(x.shape), x.new_empty(x.shape[:1]))"),
        ),
        ANSWERS.edited(
            "saves x",
            5,
            ("ctx.save_for_backward(output[0], inputs[3])", "ctx.save_for_backward(output[0], inputs[3], inputs[0])"),
            (
                "(h, weight), (p, seed, eps) = (ctx.saved_tensors, ctx.rest)",
                "(h, weight, _), (p, seed, eps) = (ctx.saved_tensors, ctx.rest)",
            ),
        ),
        ANSWERS.edited(
            "residual in the context",
            5,
            ("ctx.rest = inputs[5:]", "ctx.rest = inputs[5:]\n    ctx.more = [inputs[2]]"),
        ),
        ANSWERS.edited(
            "saves the mask",
            5,
            ("ctx.rest = inputs[5:]", "ctx.rest = inputs[5:]\n    ctx.mask = factors(inputs[0], inputs[5], inputs[6])"),
            ("grad_x = by_h * factors(h, p, seed)", "grad_x = by_h * ctx.mask"),
        ),
        ANSWERS.edited(
            "keeps its arguments in a function",
            5,
            ("ctx.rest = inputs[5:]", "ctx.rest = inputs[5:]\n    ctx.more = lambda: inputs"),
        ),
        ANSWERS.edited(
            "keeps its arguments in a list for all calls",
            5,
            ("def save(ctx, inputs, output):", "KEPT = []\n\ndef save(ctx, inputs, output):\n    KEPT.append(inputs)"),
        ),
        ANSWERS.edited(
            "keeps its arguments as numbers",
            5,
            ("ctx.rest = inputs[5:]", "ctx.rest = inputs[5:]\n    ctx.more = inputs[0].tolist()"),
        ),
        ANSWERS.edited(
            "keeps a mask behind an output",
            5,
            (
                "h = (residual + (x + bias) * factors(x, p, seed)).contiguous()",
                "room = x.new_zeros(2, *x.shape)\n    h = room[0]\n"
                "    h.copy_(residual + (x + bias) * factors(x, p, seed))",
            ),
        ),
        ANSWERS.edited(
            "saves a statistic of each row",
            6,
            ("ctx.rest = inputs[5:]", "ctx.rest = inputs[5:]\n    ctx.mean = output[0].mean(-1, keepdim=True)"),
            ("normed = (h - h.mean(-1, keepdim=True))", "normed = (h - ctx.mean)"),
        ),
        ANSWERS.edited("three arguments for the kernel", 5.5, (FORWARD, "launcher('add_norm')(x, residual, bias)")),
        ANSWERS.edited("no launch in backward", 5.5, ("if triton_runs_on(h):", "if False:")),
        ANSWERS.edited("rows summed by autograd itself", 6, ("grad_x.sum(0)", "grad_x")),
        ANSWERS.edited(
            "gradients read as rows",
            5,
            ("normed = (h -", "grad_y = grad_y.as_strided(h.shape, (h.shape[1], 1))\n    normed = (h -"),
        ),
        ANSWERS.edited("eps of the default", 1.5, ("weight, shift, eps))", "weight, shift, 1e-05))")),
        ANSWERS.edited("no mask in backward", 5, ("grad_x = by_h * factors(h, p, seed)", "grad_x = by_h")),
        ANSWERS.edited("gradient of the sum forgotten", 3.5, ("by_h = grad_h +", "by_h =")),
        ANSWERS.edited(
            "weight and shift swapped",
            4.5,
            ("(grad_y * normed).sum(0), grad_y.sum(0)", "grad_y.sum(0), (grad_y * normed).sum(0)"),
        ),
        ANSWERS.edited("not scaled", 4, (" / (1 - p)", "")),
        ANSWERS.edited("torch's dropout", 4, ("(x + bias) * factors(x, p, seed)", "F.dropout(x + bias, p)")),
    ),
    right_here=dict.fromkeys(
        CALLABLE,
        "it changes the Python function, and the checks call the registered operator by its name",
    ),
)
