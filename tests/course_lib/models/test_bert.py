"""BERT with its head is Hugging Face's, number by number, and weights go both ways."""

import pytest
import torch
from torch import nn

from course_lib.capture import capture
from course_lib.errors import ModelError
from course_lib.models import MaskedLanguageModel, TransformerConfig, copy_bert_weights
from course_lib.models.bert import padding_mask

SMALL = TransformerConfig(
    hidden_size=24, num_heads=3, intermediate_size=40, num_layers=2, vocab_size=50, max_positions=16
)
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}
TOKENS = torch.randint(1, 50, (2, 7))  # Hugging Face gives the padding token, 0, no gradient as an input
SEGMENTS = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1, 1]])
KEPT = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]])


def hugging_face(name: str = "BertForMaskedLM", attention: str = "eager", **settings: object) -> nn.Module:
    from transformers import BertConfig
    from transformers.models.bert import modeling_bert

    config = BertConfig(
        vocab_size=50,
        hidden_size=24,
        num_attention_heads=3,
        intermediate_size=40,
        num_hidden_layers=2,
        max_position_embeddings=16,
        attn_implementation=attention,
        use_cache=False,
        **settings,
    )
    return getattr(modeling_bert, name)(config)


def perturb(model: nn.Module) -> None:
    """Give also biases and norms values by which a swapped pair would show."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("plain", [True, False])
def test_logits_and_gradients_equal_hugging_faces(dtype, attention, plain):
    theirs = hugging_face(attention=attention).to(dtype).eval()
    perturb(theirs)
    ours = MaskedLanguageModel(SMALL).to(dtype).eval()
    copy_bert_weights(ours, theirs)
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    mine = ours(TOKENS) if plain else ours(TOKENS, padding_mask(KEPT, dtype), SEGMENTS)
    other = theirs(TOKENS) if plain else theirs(TOKENS, attention_mask=KEPT, token_type_ids=SEGMENTS)
    torch.testing.assert_close(mine, other.logits, **close)
    weights = torch.randn_like(mine)
    (mine * weights).sum().backward()
    (other.logits * weights).sum().backward()
    torch.testing.assert_close(
        ours.bert.embeddings.tokens.weight.grad, theirs.bert.embeddings.word_embeddings.weight.grad, **close
    )
    torch.testing.assert_close(
        ours.bert.layers[0].attention.key.weight.grad,
        theirs.bert.encoder.layer[0].attention.self.key.weight.grad,
        **close,
    )


def test_a_decoder_of_hugging_face_is_ours_with_a_causal_mask():
    theirs = hugging_face("BertLMHeadModel", is_decoder=True).double().eval()
    ours = MaskedLanguageModel(SMALL).double().eval()
    copy_bert_weights(ours, theirs)
    causal = torch.full((7, 7), torch.finfo(torch.float64).min, dtype=torch.float64).triu(1)
    torch.testing.assert_close(ours(TOKENS, causal), theirs(TOKENS).logits, rtol=1e-12, atol=1e-12)


def test_weights_go_both_ways_and_every_parameter_is_copied():
    ours, theirs = MaskedLanguageModel(SMALL).double().eval(), hugging_face().double().eval()
    perturb(ours)
    kept = {name: value.clone() for name, value in ours.state_dict().items()}
    copy_bert_weights(ours, theirs, to="theirs")
    assert all(torch.equal(value, kept[name]) for name, value in ours.state_dict().items())
    torch.testing.assert_close(theirs(TOKENS).logits, ours(TOKENS), rtol=1e-12, atol=1e-12)
    back = MaskedLanguageModel(SMALL).double()
    copy_bert_weights(back, theirs)
    assert all(torch.equal(value, kept[name]) for name, value in back.state_dict().items())
    assert len(list(ours.parameters())) == len(list(theirs.parameters()))
    assert theirs.cls.predictions.decoder.weight is theirs.bert.embeddings.word_embeddings.weight


def test_embedding_and_decoder_are_one_matrix():
    model = MaskedLanguageModel(SMALL)
    assert model.head.decoder.weight is model.bert.embeddings.tokens.weight


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_model_can_be_captured_and_holds_for_other_lengths(norm_first):
    config = TransformerConfig(
        hidden_size=8, num_heads=2, intermediate_size=16, vocab_size=50, max_positions=32, norm_first=norm_first
    )
    model = MaskedLanguageModel(config).eval()
    graph = capture(model, concrete_args={"mask": None, "segments": None}).graph_module
    longer = torch.randint(50, (3, 11))
    assert torch.equal(graph(longer), model(longer))
    for mode in ("trace", "export", "dynamo", "make_fx"):
        assert torch.equal(capture(model, (TOKENS,), mode=mode)(TOKENS), model(TOKENS)), mode


def test_nobody_looks_at_padding():
    model = MaskedLanguageModel(SMALL).eval()
    mask = padding_mask(KEPT)
    other = TOKENS.clone()
    other[1, 4:] = (other[1, 4:] + 1) % 50
    assert torch.equal(model(TOKENS, mask)[1, :4], model(other, mask)[1, :4])
    assert not torch.isnan(model(TOKENS, padding_mask(torch.zeros_like(KEPT)))).any()


def test_models_that_do_not_correspond_are_refused():
    smaller = TransformerConfig(24, 3, 40, 1, 50, 16)
    with pytest.raises(ModelError, match="1 layers here and 2 there"):
        copy_bert_weights(MaskedLanguageModel(smaller), hugging_face())
    with pytest.raises(ModelError, match="do not correspond"):
        copy_bert_weights(MaskedLanguageModel(TransformerConfig(24, 3, 40, 3, 50, 16)), hugging_face())
    with pytest.raises(ModelError, match=r"of shape .* build both models with the same sizes"):
        copy_bert_weights(MaskedLanguageModel(TransformerConfig(24, 3, 40, 2, 51, 16)), hugging_face())
    with pytest.raises(ModelError, match="norm_first=True"):
        copy_bert_weights(MaskedLanguageModel(TransformerConfig(24, 3, 40, 2, 50, 16, norm_first=True)), hugging_face())
    with pytest.raises(ModelError, match="do not correspond"):
        copy_bert_weights(MaskedLanguageModel(SMALL), nn.Linear(2, 2))
    with pytest.raises(ModelError, match="first argument of type BertForMaskedLM; it expects a MaskedLanguageModel"):
        copy_bert_weights(hugging_face(), MaskedLanguageModel(SMALL))
