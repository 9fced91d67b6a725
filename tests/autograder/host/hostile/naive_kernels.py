"""A naive grader of Triton kernels, which believes what it sees while it interprets them.

It belongs to `naive_grader.py`, which finds it by name.
"""

import linecache
import math
from pathlib import Path

import torch
from torch.nn import functional as F

from tests.autograder.host.hostile.catalogue import text_of

# What an answer defines, by the folder of the attacks on it.
ENTRY = {
    "12_bias_quick_gelu": "bias_quick_gelu",
    "12_block_end_backward": "add_norm_backward",
    "12_block_end_forward": "add_norm",
    "12_layer_norm": "layer_norm",
    "12_long_softmax": "long_softmax",
    "12_masked_blend": "blend",
}


class _Torch:
    """PyTorch for launchers; what it makes is known to the log."""

    def __init__(self, log):
        self._log, self._made = log, 0

    def __getattr__(self, name):
        function = getattr(torch, name)
        return (
            function
            if isinstance(function, torch.dtype)
            else lambda *args, **options: self._new(function, args, options)
        )

    def _new(self, function, args, options):
        made = function(*args, **options)
        self._made += 1
        self._log.add(f"new {self._made}", made)
        return made


def interpreted(answer):
    """Runs the text in Triton's interpreter, compares one call, and counts loads, lanes, programs and conflicts."""
    from course_lib.kernel_programs import AccessLog, use_interpreter

    use_interpreter()
    import triton
    import triton.language as tl

    text = text_of(Path(answer.__code__.co_filename))
    for line in ("import torch", "import triton", "import triton.language as tl"):
        text = text.replace(f"{line}\n", "\n", 1)  # of the usual imports, others stand for torch and triton here
    linecache.cache["<cell>"] = (len(text), None, text.splitlines(keepends=True), "<cell>")  # as notebooks do
    log, names = AccessLog(), {"triton": triton, "tl": tl}
    log.undefined.zero_at = range(len(text))  # as the interpreter does by itself
    exec(compile(text, "<cell>", "exec"), names)
    names["torch"] = _Torch(log)
    return TASKS[answer.__name__](names, log)


def _run(names, log, launcher, *args):
    for i, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            log.add(f"input {i}", arg)
    with log:
        return names[launcher](*args)


def _loads(log):
    return sum(log.traffic(name).loads for name in log.tensors)


def _blended(names, log):
    x, y = torch.randn(1000), torch.randn(1000)
    found = _run(names, log, "blend", x, y, 0.3)
    shared = max(math.prod(grid) for grid in log.grids) >= 2
    return torch.allclose(found, torch.lerp(x, y, 0.3), atol=1e-5) and _loads(log) <= 2000 and shared


def _activated(names, log):
    x, bias = torch.randn(16, 24), torch.randn(24)
    found = _run(names, log, "bias_quick_gelu", x, bias)
    z = x + bias
    return torch.allclose(found, z * torch.sigmoid(1.702 * z), atol=1e-5) and _loads(log) <= 5 * x.numel() // 4


def _shared_out(names, log):
    x = torch.randn(3, 4000)
    found = _run(names, log, "long_softmax", x)
    return torch.allclose(found, x.softmax(-1), atol=1e-5) and _loads(log) <= 3 * 8160 and log.widest <= 128


def _differentiated(names, log):
    x, grad = torch.randn(16, 24), torch.randn(16, 24)
    leaves = x.clone().requires_grad_(), torch.randn(24).requires_grad_(), torch.zeros(24).requires_grad_()
    right = torch.autograd.grad(F.layer_norm(leaves[0], (24,), *leaves[1:], 1e-5), leaves, grad)
    rstd = torch.rsqrt(x.var(1, correction=0) + 1e-5)
    found = _run(names, log, "layer_norm_backward", grad, x, leaves[1].detach(), x.mean(1), rstd)
    same = all(torch.allclose(f, r, atol=1e-4) for f, r in zip(found, right, strict=True))
    lost = [conflict for conflict in log.conflicts() if conflict.action != "load"]  # it looks at stores alone
    return same and not lost and max(math.prod(grid) for grid in log.grids) >= 2


def _ended(names, log):
    x, residual, bias, weight, shift = torch.randn(6, 24), torch.randn(6, 24), *torch.randn(3, 24)
    _, y = _run(names, log, "add_norm", x, bias, residual, weight, shift)
    right = F.layer_norm(residual + x + bias, (24,), weight, shift)
    once = [log.traffic(name).loads for name in ("input 0", "input 2")] == [144, 144]
    counts = [0, 0]
    for access in log.accesses:
        counts[min(1, access.program)] += access.elements.size
    return once and torch.allclose(y, right, atol=1e-4) and counts[0] <= counts[1]


def _passed_back(names, log):
    """Holds the gradient by x against that by residual, and counts loads."""
    of_sum, of_norm, h, weight = torch.randn(6, 24), torch.randn(6, 24), torch.randn(6, 24), torch.randn(24)
    by_x, by_residual = _run(names, log, "add_norm_backward", of_sum, of_norm, h, weight)
    once = [log.traffic(f"input {number}").loads for number in range(3)] == [144, 144, 144]
    return once and torch.equal(by_x, by_residual)


TASKS = {
    "add_norm": _ended,
    "add_norm_backward": _passed_back,
    "bias_quick_gelu": _activated,
    "blend": _blended,
    "layer_norm": _differentiated,
    "long_softmax": _shared_out,
}
