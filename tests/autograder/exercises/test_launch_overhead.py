"""What people likely think of launches and replays is named, and recordings in the exercise look like real ones."""

from dataclasses import fields

import pytest

from autograder.exercises.launch_overhead.launch_bound import RULE, _reason
from autograder.exercises.programs.recorded_calls import program
from autograder.host.draw import Draw
from course_lib.launches import Launch
from tests.autograder.exercises.judged import judged, said

COPIES = "for kept, new in zip(static, inputs, strict=True):\n            kept.copy_(new)"
# exercise, words of a message, change of the reference
NAMED = [
    ("15_launch_bound", " sum", ("sum(", "max(")),
    ("15_launch_bound", "1,000 bytes a microsecond", ("* 1000", "* 1000000")),
    ("15_find_violations", "host_read is True", ("'host read': new['host_read'], ", "")),
    ("15_find_violations", "may lie anywhere", ("set(launch['reads']) - written", "set(launch['reads'])")),
    ("15_replay_by_shape", "what Python computes now", ("if shapes not in known:", "if True:")),
    ("15_replay_by_shape", "bound anew changes no memory", (COPIES, "static[:] = inputs")),
    ("15_replay_by_shape", "a capture computes nothing", ("        graph.replay()\n", "")),
    ("15_replay_by_shape", "leave the caller's tensors alone", ("each.clone() for each", "each for each")),
    ("15_train_by_replay", "A warm-up trains", ("value.copy_(before[name])", "pass")),
    ("15_train_by_replay", "clone() the example", ("example.clone()", "example")),
    ("15_find_violations", "Only the first call", ("if line not in after]\n", "if False]\n")),
]


@pytest.mark.parametrize("mistake", NAMED, ids=[f"{n[0]}: {n[1]}" for n in NAMED])
def test_a_likely_mistake_is_named(mistake):
    exercise_id, words, *changes = mistake
    assert words in said(exercise_id, *changes, hidden=False)


def test_one_mistake_is_named_only_where_no_other_gives_the_same_answer():
    assert _reason("bytes", [["bytes", "first"], ["launches", "second"]]) == "first"
    assert _reason("bytes", [["bytes", "first"], ["bytes", "second"]]) == RULE


def test_recordings_in_the_exercise_have_the_fields_of_real_ones():
    tape = program(Draw(3, "fields"))
    assert tape.violations == set()
    assert set(tape.first[0]) == {field.name for field in fields(Launch)}


def test_an_answer_that_is_no_list_of_rows_is_told_what_a_row_is():
    record = judged(
        "15_find_violations", "def find_violations(program):\n    return [['host read', 4]]\n", hidden=False
    )
    assert record.points == 0
    assert "is no row. Return a list of rows [line, category]" in record.checks[0].message
