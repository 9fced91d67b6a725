"""A wrong schedule hears what was probably thought; what a schedule's answer claims is never asked."""

from __future__ import annotations

import importlib

import pytest

from autograder.exercises import find
from autograder.exercises.lessons import module_name
from tests.autograder.exercises.judged import judged, messages


def hidden(exercise: str):
    return importlib.import_module(module_name(exercise, hidden=True))


@pytest.mark.parametrize(
    ("exercise", "control", "check", "says"),
    [
        ("06_separate_biases", "FIRST_LAYER", "every layer that has the name, and no other", "Only one layer was"),
        ("06_separate_biases", "NOTHING", "one name, one layer", "No linear layer was decomposed"),
        ("06_trace_by_need", "NOT_SEPARATED", "the part of every layer", "decompose both of the part's linear layers"),
        ("06_trace_by_need", "EVERYTHING", "the part of every layer", "trace a part of it"),
        ("06_find_bias_gelu", "EXACT", "a class of its own, called fast_gelu", "find it with call_module"),
        ("06_fuse_block_ends", "FIRST_LAYER", "all layers", "Only one block of each layer, or only some layers"),
        ("06_fuse_block_ends", "OWN_EPS", "another eps", "eps are to be carried over"),
        ("06_replace_attention", "FIRST", "every layer", "Only one layer was replaced"),
        ("06_replace_attention", "NEVER_DROPS", "dropout in training", "the model has 0.25"),
        ("06_replace_attention", "NEW_NAMES", "one layer, one call", "under their names"),
        ("06_replace_attention", "ASKED_TOO_EARLY", "evaluation drops nothing", "the model has 0.0"),
        ("06_schedule_encoder", "FLAT", "training mode", "writes the answer into the graph"),
        ("06_schedule_encoder", "ONE_END", "everything, in one layer", "Only one end of each layer was fused"),
        ("06_schedule_encoder", "WHATEVER_IS_ASKED", "one step at a time", "is off in the configuration"),
        ("06_schedule_encoder", "BY_PATH", "applied twice", "nn.Linear"),
    ],
)
def test_a_wrong_schedule_hears_what_was_thought(exercise: str, control: str, check: str, says: str) -> None:
    nothing = f"def {find(exercise).entry_point}(schedule, *more):\n    return schedule\n"
    answer = nothing if control == "NOTHING" else getattr(hidden(exercise), control)
    assert says in messages(judged(exercise, answer, seed=3, only=[check]))[check]


def test_what_a_part_is_called_does_not_make_it_traced() -> None:
    pretends = (
        "class GraphModule(nn.Module):\n"
        "    def __init__(self, part):\n"
        "        super().__init__()\n"
        "        self.part, self.graph = part, fx.Graph()\n"
        "    def forward(self, hidden, residual):\n"
        "        return self.part(hidden, residual)\n\n"
        "def trace_feed_forwards(schedule):\n"
        '    part = schedule["layers.0.feed_forward"]\n'
        "    part.replace(GraphModule(part.mod))\n"
    )
    check = "the feed-forward part of one layer is a flat graph"
    assert "was not traced" in messages(judged("06_trace_by_need", pretends, seed=3, only=[check]))[check]


@pytest.mark.parametrize("seed", [3650862803055009667, 43708818515800804])
def test_a_right_schedule_is_not_wrong_where_the_weights_magnify_each_rounding(seed: int) -> None:
    """In fp32 its gradients were off by more than twice as much as eager's, whose own error there is luck."""
    with_gradients = ["a variant with other names and spellings", "training mode"]
    record = judged("06_schedule_encoder", hidden("06_schedule_encoder").REFERENCE, seed=seed, only=with_gradients)
    assert messages(record) == {}
