"""What a student hears of likely mistakes in notebook 03, and that answers cannot be had from the library."""

import pytest

from tests.autograder.exercises.judged import judged, reference
from tests.drawn import third

MISTAKES = [
    (
        "03_predict_capture",
        [
            ("(example['sum'] > 0) == (later['sum'] > 0)", "True", "keeps the branch that its example took"),
            ("'divide_by_len': same_rows", "'divide_by_rows': same_rows", "recorded as an operator"),
            ("'fails' if program in ('through_numpy', 'with_options') else 'agrees'", "'agrees'", "knows no numpy"),
        ],
    ),
    (
        "03_make_it_scriptable",
        [
            ("self.past = self.past[-self.depth:]", "pass", "grows for ever"),
            ("self.past.append(value)", "self.past = [value]", "forgotten between calls"),
            ("value = value * mask", "value = value", "mask is ignored"),
            ("self.dense(x) * scale", "self.dense(x)", "`scale` is ignored"),
        ],
    ),
    (
        "03_bias_gelu_script",
        [
            ("0.5 * h * (1 + torch.tanh(0.79788456 * (h + 0.044715 * h * h * h)))", "F.gelu(h)", "erf form"),
            (".sum_to_size(bias.shape)", "", "not summed"),
            (".sum_to_size(bias.shape)", ".sum(0)", "first dimension only"),
            (" + 0.5 * h * (1 - t * t) * inner)", ")", "Product rule"),
            ("1 + 3 * 0.044715", "1 + 0.044715", "the 3 is missing"),
            (" * inner) * grad", " * inner)", "Chain rule"),
            ("(0.5 * (1 + t) + 0.5 * h", "(0.5 * h", "the first term"),
            ("(0.5 * (1 + t)", "((1 + t)", "the first one has lost it"),
            (" + 0.5 * h * (1 - t", " + h * (1 - t", "the second one has lost it"),
            (" + 0.5 * h * (1 - t", " - 0.5 * h * (1 - t", "not subtracted"),
            ("0.5 * h * (1 - t", "0.5 * (1 - t", "lost its factor h"),
            ("(1 - t * t)", "(1 - t)", "not 1 - t"),
            ("(1 - t * t)", "(1 + t * t)", "a minus"),
            ("(1 - t * t) * inner", "(1 - t * t)", "du/dh is missing"),
            ("0.79788456 * (1 + 3", "(1 + 3", "sqrt(2/pi) is missing"),
            ("(1 + 3 * 0.044715 * h * h)", "1", "cubic term of u was not derived"),
            ("3 * 0.044715 * h * h", "3 * 0.044715 * h", "h in place of h**2"),
        ],
    ),
    (
        "03_expose_a_trace",
        [
            ("limit / 100", "limit * 2.5", "same side of the limit"),
            ("torch.ones(limit + 1, 3)", "torch.ones(limit, 3)", "Both inputs are the same"),
            ("torch.ones(limit + 1, 3)", "torch.ones(limit)", "float32 matrices"),
        ],
    ),
    (
        "03_fused_groups",
        [
            ("search(block)", "pass", "blocks"),
            ("search(inside)", "pass", "holds a graph in its attribute Subgraph"),
            (" if n.kind() != 'prim::Constant'", "", "a constant is no operator"),
            (", 'prim::oneDNNFusionGroup'", ",", "the other fuser"),
        ],
    ),
    (
        "03_limits",
        [
            ("'frozen mode'", "'none'", "a trace can be wrong without a warning"),
            ("'boolean' in str(seen['warnings'])", "True", "read which Python type"),
            ("'unknown type'", "'outside the language'", "Not every error is about syntax"),
        ],
    ),
]
CASES = [(exercise, *mistake) for exercise, mistakes in MISTAKES for mistake in mistakes]
TRIED = third(CASES, name="mistakes in torchscript_messages")  # the others in other runs


@pytest.mark.parametrize(("exercise_id", "right", "wrong", "words"), TRIED, ids=[f"{c[0]}: {c[3]}" for c in TRIED])
def test_a_likely_mistake_is_named_and_costs_its_share_only(exercise_id, right, wrong, words):
    record = judged(exercise_id, reference(exercise_id, (right, wrong)))
    said = [check.message for check in record.checks if check.status == "failed"]
    assert any(words in message for message in said), said
    assert 0 < record.points < record.max_points


MASKED = [
    ("03_predict_capture", "course_lib.models.small_programs"),
    ("03_bias_gelu_script", "course_lib.kernels"),
    ("03_bias_gelu_script", "course_lib.fusion"),
    ("03_fused_groups", "course_lib.capture.fusion_groups"),
]


@pytest.mark.parametrize(("exercise_id", "module"), MASKED, ids=[f"{m[0]}: {m[1]}" for m in MASKED])
def test_what_would_answer_an_exercise_cannot_be_imported_there(exercise_id, module):
    record = judged(exercise_id, f"import {module}\n" + reference(exercise_id), hidden=False)
    assert record.points == 0
    assert "No module named" in record.message


def test_a_derivative_that_the_framework_wrote_is_refused_by_name():
    text = reference("03_bias_gelu_script", ("def bias_gelu_backward", "def by_hand")) + (
        "\n\n\ndef bias_gelu_backward(grad, x, bias):\n"
        "    by_x = torch.ops.aten.gelu_backward(grad, x + bias, approximate='tanh')\n"
        "    return by_x, by_x.sum_to_size(bias.shape)\n"
    )
    record = judged("03_bias_gelu_script", text)
    assert any("gelu_backward, a derivative that PyTorch has ready," in check.message for check in record.checks)
    assert record.points == 5.5
