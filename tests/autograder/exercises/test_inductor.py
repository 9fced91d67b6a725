"""What people likely think of kernels and of generated code is named where it explains a wrong answer."""

import importlib

import pytest

from autograder.exercises.hidden.inductor.predict_kernels import EVERYWHERE, MISTAKES, counted, predicted
from autograder.exercises.hidden.inductor.read_generated_code import loops_of
from autograder.exercises.inductor import predict_kernels as visible
from autograder.exercises.inductor import read_generated_code as reading
from autograder.exercises.inductor.predict_kernels import random_chain
from autograder.exercises.inductor.read_generated_code import random_text
from autograder.host.draw import Draw
from course_lib.models.chains import LINES
from tests.autograder.exercises.judged import judged, reference, said
from tests.drawn import third

COUNT_STEPS = "len([s for s in steps if s not in ('product', 'sort', 'transpose', 'keep', 'unused', 'break')])"
READS, MASKED = "sorted(set(re.findall(read, block)))", "sorted(set(re.findall(read, masked)))"
FUNCTIONS = r"re.findall('std::(\\w+)\\(', block)"
REDUCTIONS = "[next((kinds[k] for k in kinds if k in update)) for update in updates]"
STARTS = '["max" if "infinity" in start else "sum" for start in re.findall(r"float tmp_acc\\d+ = .*", block)]'
# exercise, words of a message, changes of the reference
SIZES = r"[int(size) for size in re.findall('for.*<static_cast<int64_t>\\((\\d+)L', block)]"
NAMED = [
    ("09_predict_kernels", "for each step", ("'kernels': kernels + waiting", f"'kernels': {COUNT_STEPS}")),
    ("09_predict_kernels", "takes bias or residual along", ("product_last and", "False and")),
    ("09_predict_kernels", "neither kept nor lie transposed", (" and (not turned)", "")),
    ("09_predict_kernels", "reduction was counted as a call", ("'sort', 'break')", "'sort', 'share', 'break')")),
    ("09_predict_kernels", "for a transpose", ("turned = not turned", "waiting, turned = True, not turned")),
    (
        "09_predict_kernels",
        "across a graph break",
        (
            "            waiting = turned = False\n",
            "            turned = False\n            waiting = waiting and step == 'break'\n",
        ),
        ("            kernels += waiting\n", "            kernels += waiting and step != 'break'\n"),
    ),
    ("09_predict_kernels", "work that still waits", ("'kernels': kernels + waiting", "'kernels': kernels")),
    ("09_predict_kernels", "transpose before a product", ("waiting = turned = False", "waiting = False")),
    ("09_predict_kernels", "undo each other", ("turned = not turned", "turned = True")),
    ("09_predict_kernels", "either sum", ("step in ('bias', 'residual')", "step == 'residual'")),
    ("09_predict_kernels", "it is a library call too", ("calls += step != 'break'", "calls += step == 'product'")),
    ("09_predict_kernels", "Every break", ("kernels += waiting\n", "kernels += waiting or step == 'break'\n")),
    ("09_read_generated_code", "Only the first loop", (r"(\\d+)L', block)]", r"(\\d+)L', block)][:1]")),
    ("09_read_generated_code", "Every pointer", (READS, r'sorted(set(re.findall(r"\w+_ptr\d+", block)))')),
    ("09_read_generated_code", "were sorted", (FUNCTIONS, f"sorted(set({FUNCTIONS}))")),
    ("09_read_generated_code", "starts with", (REDUCTIONS, STARTS)),
    ("09_read_generated_code", "chooses between", (MASKED, f'{READS} if "?" in block else []')),
    ("09_read_generated_code", "order of the text", (SIZES, f"sorted({SIZES})")),
    ("09_read_generated_code", "reverse order", ("return loops", "return loops[::-1]")),
    ("09_read_generated_code", "no entry 'masked'", (f", 'masked': {MASKED}", "")),
    ("09_read_generated_code", "an in_out_ptr is written", (r"'^ *(\\w+_ptr", "'^ *(out_ptr")),
    (
        "09_read_generated_code",
        "not amax",
        ("'max_propagate_nan': 'max'", "'max_propagate_nan': 'amax'"),
        ("'min_propagate_nan': 'min'", "'min_propagate_nan': 'amin'"),
    ),
    (
        "09_read_generated_code",
        "for max and",
        ("'max_propagate_nan': 'max'", "'max_propagate_nan': 'min'"),
        ("'min_propagate_nan': 'min'", "'min_propagate_nan': 'max'"),
    ),
    ("09_config_experiment", "functions of C++", ("[run.kernels for", "[run.cost.launches for")),
    ("09_config_experiment", "hand each over", (", config={plan['option']: setting}", "")),
    ("09_config_experiment", "belongs to the first", ("in plan['settings']]", "in reversed(plan['settings'])]")),
    ("09_config_experiment", "upside down", ("number / least for", "least / number for")),
    ("09_config_experiment", "inputs and output;", ("(*inputs, program(*inputs))", "inputs")),
    ("09_config_experiment", "with the first run", ("number / least for", "number / moved[0] for")),
    ("09_read_generated_code", "several [&]", (MASKED, f"{MASKED}[:1]")),
]
TRIED = third(NAMED, name="mistakes in inductor")  # the others in other runs


@pytest.mark.parametrize("mistake", TRIED, ids=[f"{n[0]}: {n[1]}" for n in TRIED])
def test_a_likely_mistake_is_named(mistake):
    exercise_id, words, *changes = mistake
    assert words in said(exercise_id, *changes, hidden=False)


@pytest.mark.parametrize("module", ["course_lib.models.chains", "course_lib.graph", "course_lib.graph.generated_code"])
def test_what_would_lower_the_program_cannot_be_imported_in_the_worker(module):
    record = judged("09_predict_kernels", f"import {module}\n" + reference("09_predict_kernels"), hidden=False)
    assert (record.points, "No module named" in record.message) == (0, True)
    importlib.import_module(module)  # it is there for everybody else


PLACES = {
    f"{part} of {programs.__name__}": (part, programs)
    for part, programs in (
        ("calls", visible.few),
        ("kernels", visible.straight),
        ("kernels", visible.with_breaks),
        ("kernels", visible.of_everything),
        ("calls", visible.of_everything),
    )
}


@pytest.mark.parametrize("seed", range(30))
def test_each_mistake_shows_in_the_check_that_counts_it(seed):
    for mistake in MISTAKES:
        if mistake.counted != EVERYWHERE:
            part, programs = PLACES[mistake.counted]
            asked = programs(Draw(seed, mistake.counted))
            assert [predicted(steps, **mistake.options)[part] for steps in asked] != [
                predicted(steps)[part] for steps in asked
            ], mistake.says


def test_the_rule_without_a_mistake_is_inductors():
    draw = Draw(5, "the rule")
    for steps in (*visible.straight(draw), *visible.with_breaks(draw), *visible.of_everything(draw)):
        assert predicted(steps) == counted(steps), steps


def test_two_transposes_undo_each_other():
    assert counted(["product", "transpose", "transpose", "bias"]) == {"kernels": 0, "calls": 1}
    assert counted(["product", "transpose", "bias"]) == {"kernels": 1, "calls": 1}
    turned_for_good = reference("09_predict_kernels", ("turned = not turned", "turned = True"))
    assert judged("09_predict_kernels", turned_for_good).points < 8


def test_fresh_programs_have_many_different_answers():
    draw = Draw(7, "kernels")
    answers = {tuple(counted(random_chain(draw, n)).values()) for n in (4, 6, 8, 10, 12, 14)}
    assert len(answers) > 3
    assert {step for _ in range(40) for step in random_chain(draw, 5)} == set(LINES)


def test_what_there_is_to_read_is_what_was_written():
    padded, shared = (random_text(Draw(3, end), (end,), 1)["text"] for end in ("pad", "share"))
    padded = loops_of(padded)
    assert (padded[0]["masked"], padded[0]["reductions"]) == (["in_ptr0"], [])
    loops = loops_of(shared)
    assert [loop["reductions"] for loop in loops if loop["reductions"]] == [["sum"]]
    assert {name for loop in loops for name in loop["reads"]} & {name for loop in loops for name in loop["writes"]}


@pytest.mark.parametrize("seed", range(4))
def test_kernels_of_pointers_always_show_one_that_is_read_and_written(seed):
    written = [text["parts"]["writes"]["wrong"] for text in reading._reused(Draw(seed, "pointers"))]
    assert any(says.startswith("Only an out_ptr") for wrong in written for says in wrong)
