"""What people likely think of attention is named, and what the exercises take for facts of this PyTorch is true."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from autograder.exercises.attention.predict_backend import call_of, mask, require_predicted, setting
from autograder.exercises.attention.score_mods import Sizes, documents_of
from autograder.exercises.hidden.attention.predict_backend import _by_rules, backend_of
from autograder.exercises.hidden.attention.score_mods import block_counts
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from tests.autograder.exercises.judged import judged, said
from tests.drawn import third

# exercise, words of a message, change of the reference
NAMED = [
    ("13_predict_backend", "has no dropout", ("not call['dropout'], ", "")),
    ("13_predict_backend", "three dimensions goes to math", (", not mask or len(mask['shape']) != 3", "")),
    ("13_choose_attention", "refuses tensors that require them", ("not (need['trains'] and on_cpu)", "True")),
    ("13_choose_attention", "The mask takes memory", ("square, mask_bytes)", "square, 0)")),
    ("13_online_softmax", "were never rescaled", ("torch.exp(largest - base)", "torch.ones_like(base)")),
    ("13_online_softmax", "divided by the denominator of the last block", ("total * factor + ", "")),
    ("13_tiled_attention", "one key too many", (".triu(1)", ".triu(2)")),
    ("13_tiled_attention", "of earlier tiles was never rescaled", (" * torch.exp(lse[:, rows] - new)[..., None]", "")),
    ("13_tiled_attention", "only the last tile of keys", ("by_query[:, rows] +=", "by_query[:, rows] =")),
    ("13_tiled_attention", "the gradients by the scores were taken", ("shares.mT @ grad", "by_scores.mT @ grad")),
    ("13_score_mods", "its own", ("slopes[head] * ", "")),
]
TRIED = third(NAMED, name="mistakes in attention")  # the others in other runs


@pytest.mark.parametrize("mistake", TRIED, ids=[f"{n[0]}: {n[1]}" for n in TRIED])
def test_a_likely_mistake_is_named(mistake):
    exercise_id, words, *changes = mistake
    assert words in said(exercise_id, *changes, hidden=False)


def test_of_two_mistakes_that_explain_a_call_the_one_that_explains_the_other_calls_is_named():
    draw = Draw(5, "two explanations")
    masked = mask("queries", "keys")
    of_both, of_a_mask = call_of(draw, setting(trains=True), masked), call_of(draw, masked)
    with pytest.raises(CheckFailedError, match="Gradients alone do not lead to math"):
        require_predicted([(of_both, "math"), (of_a_mask, "flash")])
    with pytest.raises(CheckFailedError, match="A mask alone does not lead to math"):
        require_predicted([(of_both, "math"), (of_a_mask, "math")])


@pytest.mark.parametrize("call", ["torch._fused_sdp_choice", "F.scaled_dot_product_attention"])
def test_the_kernel_cannot_be_asked_for(call):
    answer = f"def predict_backend(call):\n    x = torch.ones(1, 1, 2, 8)\n    return str({call}(x, x, x))\n"
    record = judged("13_predict_backend", answer, hidden=False)
    assert (record.points, "from `torch`, which this exercise does not have" in record.message) == (0, True)


def test_the_rules_for_messages_are_those_of_pytorch():
    draw = Draw(5, "rules")
    changes = [setting(dropout=0.1), mask("queries", "keys"), mask("one", "queries", "keys"), setting(causal=True)]
    calls = [call_of(draw, *(c for c in changes if draw.chance(0.5))) for _ in range(30)]
    assert [_by_rules(call) for call in calls] == [backend_of(call) for call in calls]


def test_flex_attention_refuses_gradients_on_a_cpu_already_forward():
    query = torch.ones(1, 1, 16, 16, requires_grad=True)
    with pytest.raises(NotImplementedError, match="does not support backward on CPU"):
        flex_attention(query, query, query)


def test_a_causal_mask_of_two_blocks_a_side_skips_a_quarter():
    made = create_block_mask(lambda b, h, q, k: k <= q, None, None, 256, 256, device="cpu")
    assert made.sparsity() == 25
    assert block_counts({"mask": "causal", "length": 256, "block": 128}) == {"full": 1, "partial": 2, "empty": 1}


def test_numbers_of_documents_rise_and_fall_so_that_no_order_tells_documents_apart():
    for seed in range(60):
        ids = documents_of(Draw(seed, "documents"), Sizes(3, 1, 8, 8))
        steps = (ids[:, 1:] - ids[:, :-1]).sign().unique()
        assert steps.tolist() == [-1, 0, 1], f"seed {seed}"
