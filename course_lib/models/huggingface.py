"""Copy weights between our models and Hugging Face's BERT, so that both compute the same values.

This module does not import transformers: any model with the same module names works.
"""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import nn

from course_lib.errors import ModelError
from course_lib.models.bert import MaskedLanguageModel
from course_lib.models.transformer import TransformerLayer

Direction = Literal["ours", "theirs"]

# Our module -> the module of a BertLayer that does the same.
MODULES: Mapping[str, str] = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "projection.dense": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_forward.dense": "intermediate.dense",
    "feed_forward.projection.dense": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
# The same for the modules of a BertForMaskedLM or BertLMHeadModel outside its layers.
AROUND_LAYERS: Mapping[str, str] = {
    "bert.embeddings.tokens": "bert.embeddings.word_embeddings",
    "bert.embeddings.segments": "bert.embeddings.token_type_embeddings",
    "bert.embeddings.positions": "bert.embeddings.position_embeddings",
    "bert.embeddings.norm": "bert.embeddings.LayerNorm",
    "head.dense": "cls.predictions.transform.dense",
    "head.norm": "cls.predictions.transform.LayerNorm",
    "head.decoder": "cls.predictions.decoder",
}


def copy_layer_weights(ours: TransformerLayer, theirs: nn.Module, *, to: Direction = "ours") -> None:
    """Copy all parameters from one layer to the other: into `ours`, or with `to="theirs"` into the `BertLayer`.

    Raises `ModelError` if the layers differ in their modules or sizes; then nothing has been copied.
    """
    if not isinstance(ours, TransformerLayer):
        raise ModelError(
            f"copy_layer_weights got a first argument of type {type(ours).__name__}; it expects a TransformerLayer of "
            "this library, then the layer of transformers."
        )
    _copy("copy_layer_weights", "layer", ours, ours.norm_first, MODULES, theirs, to)


def copy_bert_weights(ours: MaskedLanguageModel, theirs: nn.Module, *, to: Direction = "ours") -> None:
    """Copy all parameters from one model to the other: into `ours`, or with `to="theirs"` into the Hugging Face model.

    `theirs` is a `BertForMaskedLM` or a `BertLMHeadModel`. Embedding and decoder stay one matrix on both sides. Raises
    `ModelError` if the models differ in their modules or sizes; then nothing has been copied.
    """
    if not isinstance(ours, MaskedLanguageModel):
        raise ModelError(
            f"copy_bert_weights got a first argument of type {type(ours).__name__}; it expects a MaskedLanguageModel "
            "of this library, then the model of transformers."
        )
    modules = dict(AROUND_LAYERS)
    for index in range(len(ours.bert.layers)):
        modules |= {
            f"bert.layers.{index}.{mine}": f"bert.encoder.layer.{index}.{other}" for mine, other in MODULES.items()
        }
    norm_first = isinstance(ours.bert.norm, nn.LayerNorm)
    layers = getattr(getattr(getattr(theirs, "bert", None), "encoder", None), "layer", ())
    if len(layers) > len(ours.bert.layers):
        raise ModelError(
            f"copy_bert_weights got models of {len(ours.bert.layers)} layers here and {len(layers)} there; "
            "build both with the same sizes."
        )
    _copy("copy_bert_weights", "model", ours, norm_first, modules, theirs, to)


def _copy(
    name: str,
    kind: str,
    ours: nn.Module,
    norm_first: bool,
    modules: Mapping[str, str],
    theirs: nn.Module,
    to: Direction,
) -> None:
    if to not in ("ours", "theirs"):
        raise ModelError(f'{name} got to={to!r}; it expects "ours" or "theirs".')
    if norm_first:
        raise ModelError(f"{name} got a {kind} with norm_first=True; BERT normalises after each part.")
    pairs = parameter_pairs(ours, theirs, modules)
    for path, mine, other in pairs:
        if mine.shape != other.shape:
            raise ModelError(
                f"{name} found {path} of shape {tuple(mine.shape)} here and {tuple(other.shape)} there; "
                f"build both {kind}s with the same sizes."
            )
    with torch.no_grad():
        for _, mine, other in pairs:
            target, source = (mine, other) if to == "ours" else (other, mine)
            target.copy_(source)


def parameter_pairs(
    ours: nn.Module, theirs: nn.Module, modules: Mapping[str, str] = MODULES
) -> list[tuple[str, nn.Parameter, nn.Parameter]]:
    """Return (our name, our parameter, their parameter) for each parameter of the modules that correspond."""
    try:
        found = [(name, ours.get_submodule(name), theirs.get_submodule(other)) for name, other in modules.items()]
        return [
            (f"{name}.{part}", parameter, getattr(other, part))
            for name, mine, other in found
            for part, parameter in mine.named_parameters(recurse=False)
        ]
    except AttributeError as error:
        raise ModelError(
            f"These models do not correspond: {error}. Expected are ours and BERT of transformers, part for part."
        ) from error
