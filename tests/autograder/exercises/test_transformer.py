"""What students of notebook 01 are likely to think is recognised and named, and costs its own checks only."""

import pytest

from tests.autograder.exercises.judged import judged, reference

HEADS, LAYER, BATCHES, TRAIN, BREAK = (
    "01_multi_head_attention",
    "01_bert_layer",
    "01_mlm_batches",
    "01_train",
    "01_break_attention",
)


def record_of(exercise_id, *changes, hidden=True):
    """The record of the reference solution with some of its text replaced."""
    return judged(exercise_id, reference(exercise_id, *changes), hidden=hidden)


BY_ONE_RESHAPE = (
    (
        "part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)",
        "part.reshape(part.shape[0], self.num_heads, part.shape[1], -1)",
    ),
)
CASES = [
    (HEADS, "heads cut by one reshape", BY_ONE_RESHAPE, "values", "cut by one reshape", "parameters"),
    (
        HEADS,
        "heads not moved back",
        (("context.transpose(1, 2).flatten(2)", "context.reshape(hidden.shape)"),),
        "values",
        "not moved back behind the sequence",
        "parameters",
    ),
    (
        HEADS,
        "scaled by the hidden size",
        (("value, mask)", "value, mask, scale=hidden.shape[-1] ** -0.5)"),),
        "values",
        "root of the hidden size",
        "masks",
    ),
    (
        HEADS,
        "no last map",
        (("self.output(context.transpose(1, 2).flatten(2))", "context.transpose(1, 2).flatten(2)"),),
        "values",
        "is not applied to the joined heads",
        "masks",
    ),
    (
        HEADS,
        "another name",
        (("self.value, self.output", "self.value, self.projection"), ("self.output(", "self.projection(")),
        "parameters",
        "lacks output.weight",
        None,
    ),
    (
        HEADS,
        "mask the wrong way round",
        (("value, mask)", "value, None if mask is None else ~mask)"),),
        "masks",
        "True means: may attend",
        "values",
    ),
    (
        LAYER,
        "ReLU",
        (("F.gelu(self.up(self", "F.relu(self.up(self"), ("F.gelu(self.up(hidden", "F.relu(self.up(hidden")),
        "norm last",
        "BERT's is GELU",
        "parameters",
    ),
    (
        LAYER,
        "usual eps",
        tuple(
            (f"{name}_norm = nn.LayerNorm(hidden_size, eps=1e-12)", f"{name}_norm = nn.LayerNorm(hidden_size)")
            for name in ("attention", "feed_forward")
        ),
        "norm last",
        "eps of 1e-5",
        "parameters",
    ),
    (
        LAYER,
        "no residual sum",
        (
            ("hidden + self.attention(hidden, mask)", "self.attention(hidden, mask)"),
            ("return hidden + self.down", "return self.down"),
            ("(hidden + self.down", "(self.down"),
        ),
        "norm last",
        "no residual sum",
        "parameters",
    ),
    (LAYER, "norm first for ever", (("if self.norm_first", "if True"),), "norm last", "before each part", "norm first"),
    (LAYER, "mask forgotten", (("layer(hidden, mask)", "layer(hidden)"),), "masks", "hand it on", "norm last"),
    (
        BATCHES,
        "all behind the mask",
        (("fate < 0.8", "fate < 2"), ("fate >= 0.9", "fate >= 2")),
        "shares",
        "of 100 only 80 should be",
        "untouched tokens",
    ),
    (BATCHES, "labels everywhere", (("torch.where(selected, tokens, -100)", "tokens"),), "shares", "ask for", None),
    (
        BATCHES,
        "mean over all tokens",
        (("(labels != -100).sum().clamp(min=1)", "labels.numel()"),),
        "loss",
        "divided by all tokens",
        "shares",
    ),
    (
        BATCHES,
        "softmax twice",
        (("logits.flatten(0, 1)", "logits.softmax(-1).flatten(0, 1)"),),
        "loss",
        "twice",
        "shares",
    ),
    (BREAK, "equal tokens", (("torch.randn", "torch.ones"),), "both", "All tokens of a sequence are equal", None),
    (
        BREAK,
        "another length",
        (("(2, heads,", "(2, heads + 1,"), ("1, heads, d", "1, heads + 1, d")),
        "both",
        "does not run",
        "one",
    ),
    (BREAK, "nothing hidden", (("mask[..., -1] = False", "pass"),), "both", "hides nothing", None),
]


@pytest.mark.parametrize(
    ("exercise_id", "name", "changes", "category", "words", "still_right"),
    CASES,
    ids=[f"{c[0]}: {c[1]}" for c in CASES],
)
def test_a_likely_mistake_is_named_and_costs_its_own_checks_only(
    exercise_id, name, changes, category, words, still_right
):
    record = record_of(exercise_id, *changes, hidden=False)
    failed = next(c for c in record.checks if c.category == category)
    assert failed.status == "failed"
    assert words in failed.message
    if still_right is not None:
        assert next(c for c in record.checks if c.category == still_right).status == "passed"


def test_mistakes_in_a_training_loop_are_named():
    record = record_of(
        TRAIN,
        ("loss.item(), step)", "loss.item(), 7)"),
        ("writer.add_graph(model, hidden[0])", "pass"),
        ("optimizer.step()", "pass"),
        hidden=False,
    )
    said = {c.category: c.message for c in record.checks}
    assert "All points of `loss/train` have the step 7" in said["scalars"]
    assert "writer.add_graph" in said["graph"]
    assert said["logged loss"] == ""
    assert "zero the gradients, go backward and step" in said["learning"]


def test_a_run_that_wrote_nothing_down_loses_that_only():
    record = record_of(TRAIN, ("SummaryWriter(folder)", "SummaryWriter('/tmp/elsewhere')"), hidden=False)
    said = {c.category: c for c in record.checks}
    assert "no event file in the folder" in said["scalars"].message
    assert said["learning"].status == "passed"


def test_weights_of_another_module_are_refused():
    assert record_of(TRAIN, ("    return model", "    return nn.Linear(2, 2)")).points == 0


def test_weights_that_were_learned_once_do_not_pass_for_another_run():
    once = ("    return model", "    _kept.append(model)\n    return _kept[0]\n\n_kept = []")
    record = record_of(TRAIN, once)
    said = {c.category: c for c in record.checks}
    assert said["held-out loss"].status == "passed"
    assert "another seed gave the same weights" in said["seeds"].message


@pytest.mark.parametrize(
    ("exercise_id", "module"),
    [
        (HEADS, "course_lib.models"),
        (LAYER, "course_lib.models.transformer"),
        (BATCHES, "course_lib.training"),
        (TRAIN, "course_lib.training.loop"),
        (BREAK, "course_lib.models"),
    ],
)
def test_what_holds_the_answer_cannot_be_imported(exercise_id, module):
    record = judged(exercise_id, f"import {module}\n", hidden=False)
    assert record.points == 0
    assert "No module named" in record.message


def test_of_twenty_letters_among_padding_none_may_be_selected():
    record = judged(BATCHES, reference(BATCHES), seed=15)
    assert record.points == record.max_points, [check.message for check in record.checks]
