"""Whatever worker of an answer is stopped, the record says so: a batch then grades the answer again alone.

An answer that took its time without waiting for a processor is not graded again.
"""

import math
from dataclasses import replace

import pytest

from autograder.classroom.batch.engine import was_stopped
from autograder.exercises import find
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.records import CheckStatus, ExerciseRecord, ExerciseStatus, SandboxRecord, SubmissionRecord
from autograder.host.sandbox import open_sandbox
from tests.autograder.exercises.judged import judged, reference

SCRIPTED = "03_bias_gelu_script"
WALL_S = 2.0


def judged_in(exercise_id: str, answer: str, checks: int) -> ExerciseRecord:
    """Judge an answer by the first checks of an exercise, in `WALL_S` seconds."""
    exercise = find(exercise_id)
    exercise = replace(exercise, wall_s=WALL_S, checks=exercise.checks[:checks])
    return judge(exercise, graded_parts(exercise, {exercise_id: answer}), sandbox=open_sandbox(), seed=3)


@pytest.mark.parametrize(("endless", "status"), [(True, ExerciseStatus.TIMED_OUT), (False, ExerciseStatus.GRADED)])
def test_a_program_that_takes_too_long_in_the_second_worker_is_not_just_a_wrong_one(monkeypatch, endless, status):
    monkeypatch.setattr("autograder.host.session.waited_s", lambda process: WALL_S)  # others took the processor
    # the student's worker only compiles it
    wrong = "while x.size(0) > 0: x = torch.tanh(x)\n    h = x + bias" if endless else "h = x - bias"
    answer = reference(SCRIPTED).replace("h = x + bias", wrong, 1)
    record = judged_in(SCRIPTED, answer, 1)

    assert [check.status for check in record.checks] == [CheckStatus.FAILED]
    assert (record.points, record.status) == (0, status)
    assert (f"longer than the {WALL_S:g} s allowed" in record.message) is endless
    graded = SubmissionRecord("03_torchscript", "a", "", SandboxRecord(1), (record,))
    assert was_stopped(graded) is endless


def test_an_answer_whose_process_is_killed_in_one_check_is_not_just_wrong_there():
    # as the kernel kills the largest process of a machine without memory
    kills = "    if query.requires_grad:\n        import os\n        os.kill(os.getpid(), 9)\n"
    answer = reference("01_scaled_dot_product", ("    scores = query @", f"{kills}    scores = query @"))
    record = judged("01_scaled_dot_product", answer, hidden=False)

    lost = [check for check in record.checks if check.status is not CheckStatus.PASSED]
    assert [(check.category, check.status) for check in lost] == [("gradients", CheckStatus.ERROR)]
    assert "was killed (signal 9), as when a machine has no memory left" in lost[0].message
    assert (record.points, record.status) == (record.max_points - lost[0].max_points, ExerciseStatus.KILLED)
    assert was_stopped(SubmissionRecord("01_transformer", "a", "", SandboxRecord(1), (record,)))


@pytest.mark.parametrize(("waited_s", "again"), [(0.0, False), (0.04, False), (0.2, True), (math.inf, True)])
def test_a_sleeping_answer_is_graded_again_only_if_it_waited_for_a_processor(monkeypatch, waited_s, again):
    monkeypatch.setattr("autograder.host.session.waited_s", lambda process: waited_s)
    record = judged_in(SCRIPTED, f"import time\ntime.sleep(60)\n{reference(SCRIPTED)}", 1)

    assert record.status is ExerciseStatus.TIMED_OUT
    assert was_stopped(SubmissionRecord("03_torchscript", "a", "", SandboxRecord(1), (record,))) is again
