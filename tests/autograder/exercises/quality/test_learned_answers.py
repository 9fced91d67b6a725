"""No exercise of plain data is earned by answers that were seen before; WHOLE=1 tries all of them, otherwise some.

A learner that has all questions of the visible checks for forty seeds, with their answers, answers each new question as
the most similar one of them.
"""

import functools
import os

import pytest

from autograder.exercises import all_exercises, find
from autograder.exercises.quality.learned_answers import Remembered, learned_points, memory
from autograder.host.exercise import Kind
from tests.drawn import some

ASKED = [each for each in all_exercises() if find(each).kind in (Kind.VALUE, Kind.ANALYSIS)]
LEAST_RATIO = 10  # different questions of forty gradings, in questions of one grading
MOST_SHARE = 0.1  # of the points
# These are not tried, and why.
ASKED_OTHERWISE = {
    "11_pass_identity": "the worker runs passes of the answer on graphs: no question has an answer of plain data",
    **dict.fromkeys(
        ("14_diff_graphs", "14_guard_package", "15_replay_by_shape", "15_train_by_replay"),
        "the worker uses what the answer makes: no question is asked by itself",
    ),
    **dict.fromkeys(
        ("16_compile_task", "16_counter_callback", "16_port_trainer"),
        "the worker trains with what the answer makes: no question is asked by itself",
    ),
    "17_work_log": "there is one question, and the answer is the log of the student's own work",
}
SLOW = (  # whole runs only: most of a minute and more each
    *("04_cost_annotator", "04_custom_tracer", "04_render_graph", "04_shape_propagation"),
    *("09_config_experiment", "09_predict_kernels", "09_read_generated_code", "10_partition_without_cycles"),
    "17_baseline",
)
QUICK = [each for each in ASKED if each not in (*ASKED_OTHERWISE, *SLOW)]
TRIED = [*some(QUICK, 5, name="learned answers"), *(SLOW if os.environ.get("WHOLE") else ())]


@functools.cache
def seen(exercise_id: str) -> Remembered:
    return memory(exercise_id)


@pytest.mark.parametrize("exercise_id", TRIED)
def test_forty_gradings_ask_many_different_questions(exercise_id):
    visible = seen(exercise_id)
    assert visible.ratio >= LEAST_RATIO, f"{visible.different} questions, {visible.ratio:.1f} times those of a grading"


@pytest.mark.parametrize("exercise_id", TRIED)
def test_the_answer_to_the_nearest_question_earns_little(exercise_id):
    earned = learned_points(exercise_id, seen(exercise_id))
    assert sum(earned.values()) < MOST_SHARE * find(exercise_id).points, earned
