"""Models to schedule, small enough for many runs, and patterns to look for."""

import torch
import torch.nn.functional as F
from torch import nn
from transformers import BertConfig, BertLMHeadModel

from course_lib.models import TransformerConfig, TransformerEncoder
from course_lib.schedule import Schedule, call_module

Tensor = torch.Tensor
TOKENS = torch.randint(0, 50, (2, 7), generator=torch.Generator().manual_seed(0))
ROWS = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))


def our_encoder() -> TransformerEncoder:
    torch.manual_seed(0)
    return TransformerEncoder(TransformerConfig(16, 2, 32, 2, 50, 16, dropout=0.3))


def huggingface_bert(**changes: object) -> BertLMHeadModel:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}
    return BertLMHeadModel(
        BertConfig(**sizes, num_hidden_layers=2, max_position_embeddings=16, hidden_dropout_prob=0.3, **changes)
    )


def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(x + bias)


def named_activation(x: Tensor, bias: Tensor) -> Tensor:
    return call_module(r"intermediate_.*|act.*", x + bias)


def after_projection(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    return call_module(".*[nN]orm", call_module("dropout", x + bias) + residual)


def after_projection_by_operator(
    x: Tensor,
    bias: Tensor,
    residual: Tensor,
    shape: object,
    weight: Tensor,
    layer_norm_bias: Tensor,
    p: float,
    training: bool,
    eps: float,
) -> Tensor:
    return F.layer_norm(F.dropout(x + bias, p, training) + residual, shape, weight, layer_norm_bias, eps)


class Block(nn.Module):
    """A linear layer and an activation, with whatever is done between and after them."""

    def __init__(self, activation: nn.Module | None = None) -> None:
        super().__init__()
        self.dense = nn.Linear(8, 8)
        self.activation = activation or nn.GELU()

    def forward(self, x: Tensor) -> object:
        return self.activation(self.dense(x))


class Escaping(Block):
    def forward(self, x: Tensor) -> object:
        h = self.dense(x)
        return self.activation(h), h


class Scaled(Block):
    def forward(self, x: Tensor) -> object:
        return self.activation(torch.add(x, self.dense.bias, alpha=2))


class Writing(Block):
    def forward(self, x: Tensor) -> object:
        h = self.dense(x)
        return self.activation(h.add_(1))


def snapshot(schedule: Schedule) -> tuple[object, ...]:
    """Return everything of a schedule that a failed call must leave as it was."""
    modules = [(name, id(module), module.training) for name, module in schedule.build().named_modules()]
    code = [str(module.graph) for module in schedule.build().modules() if hasattr(module, "graph")]
    state = [(name, id(tensor)) for name, tensor in schedule.build().state_dict(keep_vars=True).items()]
    return modules, code, state, tuple(schedule.history)
