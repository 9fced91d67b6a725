"""Fuse `gelu(x + bias)` onto the operator `course_lib::bias_gelu`.

A pass has three parts, in this order below. The *pattern* matches every spelling of the computation. The *guard* checks
for each match that the fused operator gives the same result, or returns an objection. The *replacement* is written into
a copy of the graph.
"""

from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import fx

import course_lib.kernels  # noqa: F401  # registers the operator that we fuse onto
from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import is_bias_of, one_dtype, tensor_operands
from course_lib.fusion.result import FusionResult
from course_lib.fusion.rules import Objection


def fuse_bias_gelu(gm: fx.GraphModule) -> FusionResult:
    """Return a copy of `gm` in which each `gelu(x + bias)` that may be fused is one call of `bias_gelu`.

    Shapes decide which operand is the bias, so run `course_lib.graph.propagate_shapes` first, or let
    `course_lib.fusion.fuse` do both. If shapes are unknown, the decision is made when the graph runs. The copy shares
    parameters and modules with `gm`, which is not changed. Raises `FusionError` if `gm` is no graph module.
    """
    return BiasGelu().call(gm)


def _pattern(x: torch.Tensor, bias: torch.Tensor, approximate: str) -> torch.Tensor:
    return F.gelu(x + bias, approximate=approximate)


class BiasGelu(FusionPass):
    """Fuse a bias and GELU into one call of `course_lib::bias_gelu`."""

    name = "bias_gelu"

    patterns: ClassVar = (_pattern,)

    def guard(self, match: Match) -> Objection | None:
        """Refuse a sum in which no operand is a bias of the other's dtype, and a formula that is not known.

        Addition commutes, so the pattern is tried with both orders of operands, and shapes decide.
        """
        if match["approximate"] not in ("none", "tanh"):
            reason = f"{match.anchor} takes its formula from {match['approximate']!r}, unknown until it runs"
            return Objection("approximate", reason)
        operands = tensor_operands(match, "x", "bias")
        if isinstance(operands, Objection):
            return operands
        if not is_bias_of(operands["bias"], operands["x"]):
            reason = f"{match['bias']} is no 1-D bias over the last dimension of {match['x']}"
            return Objection("bias shape", reason)
        return one_dtype(operands)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return the fused operator."""
        return _fused


def _fused(x: torch.Tensor, bias: torch.Tensor, approximate: str) -> object:
    fused = torch.ops.course_lib.bias_gelu
    return fused(x, bias) if approximate == "none" else fused(x, bias, approximate)
