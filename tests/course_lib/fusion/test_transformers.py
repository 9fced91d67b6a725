"""Exported models of the library transformers, tiny: values, gradients and state are those of the model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import nn

from course_lib.errors import CaptureError
from course_lib.fusion import fuse
from tests.drawn import some

VOCABULARY, LENGTH = 40, 6
# The names that configurations have for the sizes of a model with two layers and two heads.
SIZES: Mapping[str, int] = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 24, "max_position_embeddings": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
OF_DISTILBERT = {"vocab_size": VOCABULARY, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}
OF_GPT2 = {"vocab_size": VOCABULARY, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 16}
OF_T5 = {"vocab_size": VOCABULARY, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}


@dataclass(frozen=True)
class Model:
    """A class of the library transformers, with the sizes that make it tiny."""

    name: str  # the class of the model, and that of its configuration without what follows
    config: str
    sizes: Mapping[str, object] = field(default_factory=lambda: SIZES)

    def build(self) -> nn.Module:
        """Return the model in evaluation mode, with fresh weights that are the same each time."""
        transformers = pytest.importorskip("transformers")
        config = getattr(transformers, self.config)(**self.sizes, attn_implementation="eager")
        config.use_cache = False
        torch.manual_seed(0)
        model: nn.Module = getattr(transformers, self.name)(config)
        return model.eval()

    def inputs(self) -> dict[str, torch.Tensor]:
        """Return a batch of tokens, or of pictures for a vision model."""
        if self.name == "ViTModel":
            return {"pixel_values": torch.randn(2, 3, 8, 8)}
        tokens = torch.randint(3, VOCABULARY, (2, LENGTH))
        return {"input_ids": tokens} | ({"decoder_input_ids": tokens} if self.config in SEQUENCES else {})


SEQUENCES = ("T5Config", "BartConfig")  # of models with an encoder and a decoder
OF_VIT = {**SIZES, "image_size": 8, "patch_size": 4}
OF_ALBERT = {**SIZES, "embedding_size": 8}
OF_QUERY_GROUPS = {**SIZES, "num_key_value_heads": 1}
OF_OPT = {**SIZES, "ffn_dim": 24, "word_embed_proj_dim": 16}
OF_BART = {"vocab_size": VOCABULARY, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1,
           "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
           "max_position_embeddings": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
OF_BLOOM = {"vocab_size": VOCABULARY, "hidden_size": 16, "n_layer": 2, "n_head": 2}
MODELS = (
    Model("BertModel", "BertConfig"),
    Model("DistilBertModel", "DistilBertConfig", OF_DISTILBERT),
    Model("RobertaModel", "RobertaConfig"),
    Model("ElectraModel", "ElectraConfig", OF_ALBERT),
    Model("AlbertModel", "AlbertConfig", OF_ALBERT),
    Model("ViTModel", "ViTConfig", OF_VIT),
    Model("GPT2Model", "GPT2Config", OF_GPT2),
    Model("T5Model", "T5Config", OF_T5),
    Model("LlamaModel", "LlamaConfig", OF_QUERY_GROUPS),
    Model("OPTModel", "OPTConfig", OF_OPT),
    Model("GPTNeoXModel", "GPTNeoXConfig"),
    Model("MistralModel", "MistralConfig", OF_QUERY_GROUPS),
    Model("Qwen2Model", "Qwen2Config", OF_QUERY_GROUPS),
    Model("MPNetModel", "MPNetConfig"),
    Model("BartModel", "BartConfig", OF_BART),
    Model("BloomModel", "BloomConfig", OF_BLOOM),
    Model("GemmaModel", "GemmaConfig", {**OF_QUERY_GROUPS, "head_dim": 8}),
    Model("PhiModel", "PhiConfig"),
)


def _tensors(result: Any) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_leaves(dict(result) if isinstance(result, Mapping) else result)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _run(model: nn.Module, inputs: Mapping[str, torch.Tensor]) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """Return the results of a model, and the gradients of its parameters by name."""
    model.zero_grad()
    results = _tensors(model(**inputs))
    sum((one * torch.linspace(-1, 1, one.numel()).reshape(one.shape)).sum() for one in results).backward()  # type: ignore[union-attr]  # no result would be 0
    return results, {name: one.grad for name, one in model.named_parameters() if one.grad is not None}


@pytest.mark.parametrize("model", some(MODELS, 3, name="transformers"), ids=lambda model: model.name)
def test_an_exported_transformer_keeps_its_values_and_gradients(model: Model) -> None:
    program, inputs = model.build(), model.inputs()
    expected, gradients = _run(program, inputs)
    exported = torch.export.export(program, (), inputs)
    result = fuse(exported, (), example_kwarg_inputs=inputs)
    found, of_fused = _run(result.graph_module, inputs)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    assert of_fused.keys() == gradients.keys()
    for name, gradient in gradients.items():
        scale = max(1.0, float(gradient.abs().max()))  # which rounding is in proportion to
        torch.testing.assert_close(of_fused[name], gradient, rtol=1.3e-6, atol=1e-5 * scale, msg=name)
    assert result.num_matches > 0


REFUSED = (
    Model("BertModel", "BertConfig"),
    Model("GPT2Model", "GPT2Config", OF_GPT2),
    Model("T5EncoderModel", "T5Config", OF_T5),
)


@pytest.mark.parametrize("model", REFUSED, ids=lambda model: model.name)
def test_a_transformer_that_torch_fx_refuses_is_fused_in_the_way_that_the_error_names(model: Model) -> None:
    program = model.build()
    named = {name: one for name, one in model.inputs().items() if name == "input_ids"}
    with pytest.raises(
        CaptureError, match=r"fuse\(torch.export.export\(model, inputs, \{...\}\), inputs, example_kwarg"
    ):
        fuse(program, (), example_kwarg_inputs=named)
    result = fuse(torch.export.export(program, (), named), (), example_kwarg_inputs=named)
    assert result.num_matches > 0
    found = _tensors(result.graph_module(**named))
    for one, expected in zip(found, _tensors(program(**named)), strict=True):
        torch.testing.assert_close(one, expected)


def test_a_function_that_torch_fx_refuses_is_not_sent_to_export_which_takes_modules_only() -> None:
    with pytest.raises(CaptureError) as caught:
        fuse(lambda x: x * 2 if x.sum() > 0 else x, (torch.ones(2),))
    assert "torch.export" not in str(caught.value)
