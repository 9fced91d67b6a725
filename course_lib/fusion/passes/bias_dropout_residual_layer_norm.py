"""Fuse the operators after each half of a Transformer layer: bias, dropout, residual sum and LayerNorm.

For the same seed, the fused operator drops other elements than PyTorch's dropout: it computes its mask from its own
seed instead of saving the mask. Rate and scale are the same, and the gradient uses the same mask.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import fx

import course_lib.kernels  # noqa: F401  # registers the operator that we fuse onto
from course_lib.fusion import inserted_modules
from course_lib.fusion.calls import ModuleAttribute
from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import attribute_of, is_bias_of, normalises_last_dimension, one_dtype, tensor_operands
from course_lib.fusion.rules import Objection
from course_lib.fusion.surgery import new_module

Tensor = torch.Tensor
_TENSORS = ("x", "bias", "residual", "weight", "layer_norm_bias")  # as the fused operator takes them


# fmt: off
_PATTERNS: tuple[Any, ...] = (
    lambda x, bias, residual, normalized_shape, weight, layer_norm_bias, p, training, eps:
        F.layer_norm(F.dropout(x + bias, p, training) + residual, normalized_shape, weight, layer_norm_bias, eps),
    lambda hidden, linear_weight, bias, residual, normalized_shape, weight, layer_norm_bias, p, training, eps:
        F.layer_norm(F.dropout(F.linear(hidden, linear_weight, bias), p, training) + residual,
                     normalized_shape, weight, layer_norm_bias, eps),
    lambda x, bias, residual, normalized_shape, weight, layer_norm_bias, eps:
        F.layer_norm(x + bias + residual, normalized_shape, weight, layer_norm_bias, eps),
)
# fmt: on


class BiasDropoutResidualLayerNorm(FusionPass):
    """Fuse bias, dropout, residual sum and LayerNorm into one call, for training and evaluation.

    Where dropout is a module, its flag may change after the pass, so the fused call becomes a module too, and follows
    `train()` and `eval()`. After a linear layer, the bias moves from the layer into the fused operator.
    """

    name = "bias_dropout_residual_layer_norm"
    patterns: ClassVar = _PATTERNS

    def guard(self, match: Match) -> Objection | None:
        """Refuse shapes and dtypes that the fused operator does not take, and an unknown p or training flag."""
        if "p" in match.operands:
            p, training = match["p"], match["training"]
            if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
                return Objection("argument", f"dropout takes p from {p!r}; only a number between 0 and 1 can be fused")
            if not isinstance(training, (bool, ModuleAttribute)):
                return Objection("argument", f"whether dropout is in training mode, {training!r}, is known only later")
        rows = match if "x" in match.operands else _with_rows(match)
        return normalises_last_dimension(rows) or _objection_to_bias(rows)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return the fused operator, or a module around it that has the training flag."""
        switched = isinstance(match.operands.get("training"), ModuleAttribute)
        fused: Callable[..., object] = _fused_module(match) if switched else _fused_operator
        if "hidden" not in match.operands:
            return fused

        def after_linear(*, hidden: Tensor, linear_weight: Tensor, **operands: object) -> object:
            return fused(x=F.linear(hidden, linear_weight), **operands)

        return after_linear


def _with_rows(match: Match) -> Match:
    """Return the match with the linear layer's result as `x`: the fused operator adds the bias to the same shape."""
    linear = next(call.node for call in match.calls if call.operator.name == "linear")
    return replace(match, operands={**match.operands, "x": linear})


def _objection_to_bias(match: Match) -> Objection | None:
    if not isinstance(match["bias"], (fx.Node, ModuleAttribute)):
        return Objection("bias shape", f"{match['bias']!r} is no tensor, and the fused operator adds a bias")
    operands = tensor_operands(match, "x", "bias", "residual")
    if isinstance(operands, Objection):
        return operands
    if not is_bias_of(operands["bias"], operands["x"]):
        return Objection("bias shape", f"{match['bias']} is no 1-D bias over the last dimension of {match['x']}")
    return one_dtype(operands)


def _fused_module(match: Match) -> Callable[..., object]:
    owner, training, p, eps = match.anchor.graph.owning_module, match["training"], match["p"], match["eps"]
    assert owner is not None, "a pass works on the graph of a GraphModule"
    assert isinstance(training, ModuleAttribute), "a literal flag needs no module"
    assert isinstance(p, (int, float)), "the guard has seen that p is a number"
    assert isinstance(eps, (int, float)), "the guard has seen that eps is a number"
    module = inserted_modules.BiasDropoutResidualLayerNorm(p, eps).train(bool(attribute_of(match, training)))
    call = new_module(owner, "bias_dropout_residual_layer_norm", module)

    def fused(**operands: Any) -> object:
        return call(*(operands[name] for name in _TENSORS))

    return fused


def _fused_operator(*, eps: float, p: float = 0.0, training: bool = False, **operands: Any) -> object:
    tensors = (operands[name] for name in _TENSORS)
    return torch.ops.course_lib.bias_dropout_residual_layer_norm(*tensors, p, training, eps)
