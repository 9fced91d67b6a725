"""Copy weights between our layer and Hugging Face's `BertLayer`, so that the two can be compared number by number.

Nothing of transformers is imported here: the other layer is whatever has its module names.
"""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import nn

from course_lib.errors import ModelError
from course_lib.models.transformer import TransformerLayer

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


def copy_layer_weights(ours: TransformerLayer, theirs: nn.Module, *, to: Literal["ours", "theirs"] = "ours") -> None:
    """Copy all parameters from one layer to the other: into `ours`, or with `to="theirs"` into the `BertLayer`.

    Raises `ModelError` if the layers differ in their modules or sizes; then nothing has been copied.
    """
    if to not in ("ours", "theirs"):
        raise ModelError(f'copy_layer_weights got to={to!r}; it expects "ours" or "theirs".')
    if ours.norm_first:
        raise ModelError("copy_layer_weights got a layer with norm_first=True; BERT normalises after each part.")
    pairs = parameter_pairs(ours, theirs)
    for name, mine, other in pairs:
        if mine.shape != other.shape:
            raise ModelError(
                f"copy_layer_weights found {name} of shape {tuple(mine.shape)} here and {tuple(other.shape)} there; "
                "build both layers with the same sizes."
            )
    with torch.no_grad():
        for _, mine, other in pairs:
            target, source = (mine, other) if to == "ours" else (other, mine)
            target.copy_(source)


def parameter_pairs(ours: nn.Module, theirs: nn.Module) -> list[tuple[str, nn.Parameter, nn.Parameter]]:
    """Return (our name, our parameter, their parameter) for each parameter of a layer."""
    try:
        modules = [(name, ours.get_submodule(name), theirs.get_submodule(other)) for name, other in MODULES.items()]
    except AttributeError as error:
        raise ModelError(
            f"These layers do not correspond: {error}. Expected are TransformerLayer and BertLayer."
        ) from error
    return [
        (f"{name}.{part}", getattr(mine, part), getattr(other, part))
        for name, mine, other in modules
        for part in ("weight", "bias")
    ]
