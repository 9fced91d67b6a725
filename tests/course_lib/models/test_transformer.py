"""The transformer is the one that others know: BERT's layer, PyTorch's pre-norm layer, PyTorch's attention."""

from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.capture import capture
from course_lib.errors import ModelError
from course_lib.graph import count_operators, from_data, to_data
from course_lib.models import TransformerConfig, TransformerEncoder, TransformerLayer, copy_layer_weights
from course_lib.models.huggingface import parameter_pairs
from course_lib.models.transformer import FeedForward, SelfAttention, attention_probabilities, scaled_dot_product

SMALL = TransformerConfig(
    hidden_size=24, num_heads=3, intermediate_size=40, num_layers=2, vocab_size=50, max_positions=16
)
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}
DTYPES = list(TOLERANCE)


def _bert_layer(config: TransformerConfig, attention: str) -> nn.Module:
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertLayer

    settings = BertConfig(
        hidden_size=config.hidden_size,
        num_attention_heads=config.num_heads,
        intermediate_size=config.intermediate_size,
        layer_norm_eps=config.layer_norm_eps,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
        attn_implementation=attention,
    )
    return cast(nn.Module, BertLayer(settings))


def _mask(dtype: torch.dtype) -> torch.Tensor:
    mask = torch.zeros(2, 1, 1, 7, dtype=dtype)
    mask[0, ..., 5:] = torch.finfo(dtype).min
    return mask


def _first(output: Any) -> torch.Tensor:
    return cast(torch.Tensor, output[0] if isinstance(output, tuple) else output)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("masked", [True, False])
def test_the_layer_equals_hugging_faces_in_outputs_and_all_gradients(
    dtype: torch.dtype, attention: str, masked: bool
) -> None:
    ours, theirs = TransformerLayer(SMALL).to(dtype).eval(), _bert_layer(SMALL, attention).to(dtype).eval()
    copy_layer_weights(ours, theirs)
    x, weights = torch.randn(2, 7, 24, dtype=dtype), torch.randn(2, 7, 24, dtype=dtype)
    mask = _mask(dtype) if masked else None
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    outputs = [_first(layer(given, mask)) for layer, given in zip((ours, theirs), inputs, strict=True)]
    for output in outputs:
        (output * weights).sum().backward()
    close: Any = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(*outputs, **close)
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad, **close)
    pairs = parameter_pairs(ours, theirs)
    assert len(pairs) == len(list(ours.parameters())) == len(list(theirs.parameters()))
    for name, mine, other in pairs:
        torch.testing.assert_close(mine.grad, other.grad, msg=lambda text, name=name: f"{name}: {text}", **close)


def test_weights_can_be_copied_both_ways() -> None:
    ours, theirs = TransformerLayer(SMALL), _bert_layer(SMALL, "eager")
    kept = [parameter.clone() for parameter in ours.parameters()]
    copy_layer_weights(ours, theirs, to="theirs")
    assert all(torch.equal(mine, other) for _, mine, other in parameter_pairs(ours, theirs))
    assert all(map(torch.equal, ours.parameters(), kept))


def test_layers_that_do_not_correspond_are_refused() -> None:
    with pytest.raises(ModelError, match="build both layers with the same sizes"):
        copy_layer_weights(TransformerLayer(TransformerConfig()), _bert_layer(SMALL, "eager"))
    with pytest.raises(ModelError, match="do not correspond"):
        copy_layer_weights(TransformerLayer(SMALL), nn.Linear(2, 2))
    with pytest.raises(ModelError, match="norm_first"):
        copy_layer_weights(TransformerLayer(TransformerConfig(norm_first=True)), _bert_layer(SMALL, "eager"))
    with pytest.raises(ModelError, match="first argument of type BertLayer; it expects a TransformerLayer"):
        copy_layer_weights(cast(Any, _bert_layer(SMALL, "eager")), TransformerLayer(SMALL))
    with pytest.raises(ModelError, match='"ours" or "theirs"'):
        copy_layer_weights(TransformerLayer(SMALL), _bert_layer(SMALL, "eager"), to=cast(Any, "mine"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm_first", [True, False])
def test_the_layer_equals_pytorchs_with_the_norm_on_either_side(norm_first: bool, dtype: torch.dtype) -> None:
    config = TransformerConfig(hidden_size=24, num_heads=3, intermediate_size=40, norm_first=norm_first)
    ours = TransformerLayer(config).to(dtype).eval()
    theirs = nn.TransformerEncoderLayer(24, 3, 40, 0.1, F.gelu, 1e-12, batch_first=True, norm_first=norm_first)
    theirs = theirs.to(dtype).eval()
    parts = [ours.attention.query, ours.attention.key, ours.attention.value]
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    for mine, other in [
        (ours.projection.dense, theirs.self_attn.out_proj),
        (ours.feed_forward.dense, theirs.linear1),
        (ours.feed_forward.projection.dense, theirs.linear2),
        (ours.attention_norm, theirs.norm1),
        (ours.feed_forward_norm, theirs.norm2),
    ]:
        other.load_state_dict(mine.state_dict())
    x = torch.randn(2, 7, 24, dtype=dtype)
    torch.testing.assert_close(ours(x), theirs(x), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_equals_pytorchs(dtype: torch.dtype) -> None:
    query, key, value = (torch.randn(2, 3, rows, 8, dtype=dtype) for rows in (5, 7, 7))
    mask = torch.randn(5, 7, dtype=dtype)
    close: Any = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(
        scaled_dot_product(query, key, value), F.scaled_dot_product_attention(query, key, value), **close
    )
    torch.testing.assert_close(
        scaled_dot_product(query, key, value, mask, head_size=8),
        F.scaled_dot_product_attention(query, key, value, attn_mask=mask),
        **close,
    )


def test_dropout_acts_on_probabilities_in_training_alone() -> None:
    x = torch.randn(2, 7, 24)
    layer = TransformerLayer(SMALL)
    assert not torch.equal(layer.train()(x), layer(x))
    assert torch.equal(layer.eval()(x), layer(x))


def test_probabilities_add_up_to_one_and_are_what_dropout_is_applied_to() -> None:
    query, key, value = (torch.randn(2, 5, 8) for _ in range(3))
    probabilities = attention_probabilities(query, key)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(2, 5))
    torch.testing.assert_close(probabilities @ value, scaled_dot_product(query, key, value))
    attention = SelfAttention(SMALL).train()
    attention.dropout.p = 1.0
    assert not attention(torch.randn(2, 7, 24)).any()


def test_dropout_stands_at_every_place_where_bert_has_it() -> None:
    graph_module = capture(TransformerEncoder(SMALL)).graph_module
    assert count_operators(graph_module)["torch.nn.Dropout"] == 1 + 3 * SMALL.num_layers


PROGRAMS: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]] = {
    "attention": (SelfAttention(SMALL), (torch.randn(2, 7, 24),)),
    "feed_forward": (FeedForward(SMALL), (torch.randn(2, 7, 24), torch.randn(2, 7, 24))),
    "layer": (TransformerLayer(SMALL), (torch.randn(2, 7, 24),)),
    "layer_norm_first": (
        TransformerLayer(TransformerConfig(hidden_size=24, num_heads=3, norm_first=True)),
        (torch.randn(2, 7, 24),),
    ),
    "encoder": (TransformerEncoder(SMALL), (torch.randint(50, (2, 7)),)),
    "encoder_norm_first": (
        TransformerEncoder(TransformerConfig(hidden_size=24, num_heads=3, norm_first=True)),
        (torch.randint(50, (2, 7)),),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("masked", [True, False])
def test_every_model_can_be_captured_and_carried_as_data(name: str, masked: bool) -> None:
    model, inputs = PROGRAMS[name]
    model = model.eval()
    takes_mask = name != "feed_forward"
    given = (*inputs, _mask(torch.float32)) if takes_mask and masked else inputs
    fixed = {"mask": None} if takes_mask and not masked else None
    captured = capture(model, concrete_args=fixed).graph_module
    assert torch.equal(captured(*given), model(*given))
    longer = tuple(torch.cat([tensor, tensor], dim=1) for tensor in inputs)
    if not masked:
        assert torch.equal(captured(*longer), model(*longer))
    assert torch.equal(from_data(*to_data(captured))(*given), model(*given))


WRONG_SIZES: list[tuple[dict[str, Any], str]] = [
    ({"hidden_size": 10, "num_heads": 3}, "multiple of the number of heads"),
    ({"num_layers": 0}, "num_layers=0"),
    ({"dropout": 1.5}, "dropout=1.5"),
]


@pytest.mark.parametrize(("sizes", "sentence"), WRONG_SIZES)
def test_sizes_that_cannot_work_are_refused(sizes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        TransformerConfig(**sizes)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_model_can_be_scripted_with_equal_values_and_gradients(name: str, masked: bool) -> None:
    model, inputs = PROGRAMS[name]
    given = (*inputs, _mask(torch.float32)) if name != "feed_forward" and masked else inputs
    scripted = capture(model, mode="script")
    for training in (True, False):
        results = []
        for run in (model, scripted):
            model.train(training).zero_grad()
            assert scripted.module is not None
            scripted.module.train(training)
            torch.manual_seed(0)
            result = run(*given)
            result.square().sum().backward()
            results.append([result, *(parameter.grad for parameter in model.parameters())])
        for expected, found in zip(*results, strict=True):
            torch.testing.assert_close(found, expected)
