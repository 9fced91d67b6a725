"""Strategy: register the formula for autograd itself and for all devices, so that derivative and form need no rule. Surface: dispatch keys.

Class: answer theft. Unprotected: grader differentiated gives full marks. Level: 5.
Must get at most 8.8: PyTorch records what the formula does and no operator, which the worker sees in the recorded nodes.
"""

import torch
from torch.nn import functional as F


def silu_gate(x):
    gate, value = x.chunk(2, -1)
    return (F.silu(gate) * value).contiguous()


def append_rows(cache, rows, at):
    cache[at : at + rows.shape[0]] = rows
    return cache[: at + rows.shape[0]].clone()


library = torch.library.Library("lesson11", "DEF")
library.define("silu_gate(Tensor x) -> Tensor")
library.define("append_rows(Tensor(a!) cache, Tensor rows, SymInt at) -> Tensor")
library.impl("silu_gate", silu_gate, "CompositeExplicitAutograd")
library.impl("silu_gate", silu_gate, "Autograd")
library.impl("append_rows", append_rows, "CompositeExplicitAutograd")
