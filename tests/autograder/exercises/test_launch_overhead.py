"""What people likely think of launches and replays is named, and recordings in the exercise look like real ones."""

from dataclasses import fields

import pytest
import torch

from autograder.exercises.launch_overhead.launch_bound import RULE, _reason
from autograder.exercises.launch_overhead.replay_by_shape import require_replays
from autograder.exercises.programs import replayed_runs
from autograder.exercises.programs.recorded_calls import program
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from course_lib import launches
from course_lib.launches import Launch
from tests.autograder.exercises.judged import judged, reference, said

CALLS = [{"shapes": [[2, 3], [2, 3]], "seed": seed, "draws": None} for seed in range(4)]

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


def test_a_witness_tells_replays_from_eager_calls_on_static_tensors_too():
    def required(answer, **changed):
        with torch.random.fork_rng(devices=[]):
            report = replayed_runs.call_in_turn(answer, ["times", "sin", "plus"], CALLS) | changed
        require_replays(report["reads"][1:], 5, report["middles"][1:])

    names = {**vars(launches), "torch": torch}
    exec(reference("15_replay_by_shape"), names)
    required(names["replayed"])
    with pytest.raises(CheckFailedError, match="read the same memory 0 times"):
        required(lambda function: function)
    with pytest.raises(CheckFailedError, match="read the same memory 3 times"):  # those of static inputs
        required(on_static_tensors)
    with pytest.raises(CheckFailedError, match="did not write the captured results"):
        required(on_static_tensors, reads=[[7] * 9] * 4)  # as somebody reports who replaced the witness
    with pytest.raises(CheckFailedError, match="reads 3 tensors in memory that no call before it read"):
        required(names["replayed"], reads=[[7] * 9 + [3 * each, 3 * each + 1, 3 * each + 2] for each in range(4)])


@pytest.mark.parametrize("read", ["x.tolist()", "x.numpy()", "x.sum().item()", "f'{x[0]:.1f}'"])
def test_a_witness_counts_reads_that_pytorch_dispatches_and_those_it_does_not(read):
    x = torch.ones(2)
    with replayed_runs.Witness() as witness:
        x * 2
        eval(read, {"x": x})
    assert witness.host_reads >= 1
    assert len(witness.reads) >= 1


def on_static_tensors(function):
    static = [torch.zeros(2, 3), torch.zeros(2, 3)]
    return lambda *inputs: function(*(kept.copy_(new) for kept, new in zip(static, inputs, strict=True)))
