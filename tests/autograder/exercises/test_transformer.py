"""What students of notebook 01 are likely to think is recognised and named, and costs its own checks only."""

import pytest
import torch

from autograder.exercises.transformer import train as training
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.module import ModuleAnswer
from tests.autograder.exercises.judged import judged, reference
from tests.drawn import third

HEADS, LAYER, BREAK = "01_multi_head_attention", "01_bert_layer", "01_break_attention"
BATCHES, TRAIN = "01_mlm_batches", "01_train"


def record_of(exercise_id, *changes, hidden=True):
    """The record of the reference solution with some of its text replaced."""
    return judged(exercise_id, reference(exercise_id, *changes), hidden=hidden)


# exercise, category of the check, words of its message, a category that is still right, changes of the reference
CASES = [
    (
        HEADS,
        "values",
        "cut by one reshape",
        "parameters",
        (
            "part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)",
            "part.reshape(part.shape[0], self.num_heads, part.shape[1], -1)",
        ),
    ),
    (
        HEADS,
        "values",
        "not moved back behind the sequence",
        "parameters",
        ("context.transpose(1, 2).flatten(2)", "context.reshape(hidden.shape)"),
    ),
    (
        HEADS,
        "values",
        "root of the hidden size",
        "masks",
        ("value, mask)", "value, mask, scale=hidden.shape[-1] ** -0.5)"),
    ),
    (
        HEADS,
        "values",
        "is not applied to the joined heads",
        "masks",
        ("self.output(context.transpose(1, 2).flatten(2))", "context.transpose(1, 2).flatten(2)"),
    ),
    (
        HEADS,
        "parameters",
        "lacks output.weight",
        None,
        ("self.value, self.output", "self.value, self.projection"),
        ("self.output(", "self.projection("),
    ),
    (HEADS, "masks", "True means: may attend", "values", ("value, mask)", "value, None if mask is None else ~mask)")),
    (
        LAYER,
        "norm last",
        "BERT's is GELU",
        "parameters",
        ("F.gelu(self.up(self", "F.relu(self.up(self"),
        ("F.gelu(self.up(hidden", "F.relu(self.up(hidden"),
    ),
    (
        LAYER,
        "norm last",
        "eps of 1e-5",
        "parameters",
        ("attention_norm = nn.LayerNorm(hidden_size, eps=1e-12)", "attention_norm = nn.LayerNorm(hidden_size)"),
        ("feed_forward_norm = nn.LayerNorm(hidden_size, eps=1e-12)", "feed_forward_norm = nn.LayerNorm(hidden_size)"),
    ),
    (
        LAYER,
        "norm last",
        "no residual sum",
        "parameters",
        ("hidden + self.attention(hidden, mask)", "self.attention(hidden, mask)"),
        ("return hidden + self.down", "return self.down"),
        ("(hidden + self.down", "(self.down"),
    ),
    (LAYER, "norm last", "before each part", "norm first", ("if self.norm_first", "if True")),
    (LAYER, "masks", "hand it on", "norm last", ("layer(hidden, mask)", "layer(hidden)")),
    (
        BATCHES,
        "shares",
        "of 100 only 80 should be",
        "untouched tokens",
        ("fate < 0.8", "fate < 2"),
        ("fate >= 0.9", "fate >= 2"),
    ),
    (BATCHES, "shares", "ask for", None, ("torch.where(selected, tokens, -100)", "tokens")),
    (BATCHES, "loss", "divided by all tokens", "shares", ("(labels != -100).sum().clamp(min=1)", "labels.numel()")),
    (BATCHES, "loss", "twice", "shares", ("logits.flatten(0, 1)", "logits.softmax(-1).flatten(0, 1)")),
    (BREAK, "both", "All tokens of a sequence are equal", None, ("torch.randn", "torch.ones")),
    (BREAK, "both", "does not run", "one", ("(2, heads,", "(2, heads + 1,"), ("1, heads, d", "1, heads + 1, d")),
    (BREAK, "both", "hides nothing", None, ("mask[..., -1] = False", "pass")),
]
TRIED = third(CASES, name="mistakes in transformer")  # the others in other runs


@pytest.mark.parametrize("mistake", TRIED, ids=[f"{c[0]}: {c[2]}" for c in TRIED])
def test_a_likely_mistake_is_named_and_costs_its_own_checks_only(mistake):
    exercise_id, category, words, still_right, *changes = mistake
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
    assert "call optimizer.step()" in said["learning"]


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


@pytest.mark.parametrize(("learns_in", "used"), [(1, 1), (3, 3), (9, 1)])
def test_a_training_that_begins_to_learn_late_is_tried_again(monkeypatch, learns_in, used):
    runs = []

    def run_on(answer, text, seed):
        state = {"number": torch.tensor(len(runs) + 1)}
        runs.append(training.Run(text, seed, state, CheckFailedError("no events")))
        return runs[-1]

    monkeypatch.setattr(training, "run_on", run_on)
    monkeypatch.setattr(training, "learned", lambda state, text: int(state["number"]) == learns_in)

    found = training.one_run(ModuleAnswer(None, None), Draw(3, "training"))

    assert int(found.state["number"]) == used
    assert len(runs) == min(learns_in, training.TRIES)
    assert len({run.seed for run in runs}) == len(runs)
