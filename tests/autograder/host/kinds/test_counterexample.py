"""A counterexample counts when the wrong program differs on it and the right one does not, whatever else it is."""

from dataclasses import replace

import pytest
import torch

from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.kinds.counterexample import CounterexampleAnswer, Trial, disproves
from autograder.host.kinds.returned_values import read_values
from autograder.host.sandbox import open_sandbox
from autograder.host.session import AnswerFailedError, result_of
from autograder.protocol import Message
from autograder.protocol.requests.answers import FindInputs
from autograder.worker.kinds.counterexample import counterexample_answer
from tests.autograder.host.in_process import InProcess

SCALES = """
import torch

def reference(x, y):
    return x @ y

def right(x, y):
    return (y.T @ x.T).T

def wrong(x, y):
    return torch.matmul(x, y) if x.shape[0] < {rows} else x @ y + y.sum()
"""
PASSES = """
def reference(program, x):
    return program(x), x

right = reference

def wrong(program, x):
    program.graph.eliminate_dead_code()
    program.recompile()
    return program(x), x
"""


def verdict(function, trial):
    """What the check says; empty if the counterexample counts."""
    check = disproves(lambda draw: [trial])
    try:
        check(CounterexampleAnswer(InProcess(counterexample_answer(function)), InProcess()), Draw(1))
    except (CheckFailedError, AnswerFailedError) as error:
        return str(error)
    return ""


MATRICES = Trial("a product", SCALES.format(rows=3), question=3)


def matrices(rows):
    return torch.randn(rows, 4), torch.randn(4, 5)


def writes(x):
    x.add_(1)
    return x * 2


@pytest.mark.parametrize("form", [tuple, list])
def test_inputs_on_which_only_the_wrong_program_differs_count(form):
    assert verdict(lambda rows: form(matrices(rows)), MATRICES) == ""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda rows: (torch.randn(rows - 1, 4), torch.randn(4, 5)), "gives the same result"),
        (lambda rows: (torch.randn(rows, 4), torch.zeros(4, 5)), "gives the same result"),
        (lambda rows: (torch.randn(rows, 4), torch.randn(3, 5)), "the program itself does not run"),
        (lambda rows: torch.randn(rows, 4), "the program itself does not run"),
        (lambda rows: None, "the program itself does not run"),
        (lambda rows: (torch.full((rows, 4), torch.nan), torch.randn(4, 5)), "NaN or infinity"),
        (lambda rows: (torch.full((rows, 4), 1e9), torch.randn(4, 5)), "larger than 10000"),
        (lambda rows: (torch.ones(300, 300), torch.ones(300, 300)), "elements"),
        (lambda rows: (torch.ones(rows, 4, dtype=torch.complex64), torch.ones(4, 5)), "complex"),
        (lambda rows: (writes, torch.ones(4, 5)), "1 programs where none"),
        (lambda rows: (torch.relu, torch.ones(4, 5)), "cannot be traced by torch.fx"),
        (lambda rows: [1] * 3000, "more than 2000 parts"),
        (lambda rows: "x" * 2000, "2,000 characters"),
        (lambda rows: (10**400, 1), "NaN or infinity"),
        (lambda rows: {1: 2}, "return tensors, plain data"),
    ],
)
def test_other_inputs_do_not_count_and_the_message_says_why(function, words):
    assert words in verdict(function, MATRICES)


def test_inputs_on_which_the_right_program_differs_too_prove_nothing():
    text = "def reference(x):\n    return x\ndef right(x):\n    return x.abs()\ndef wrong(x):\n    return x * 2\n"
    trial = Trial("x", text)

    assert "also differs on this input" in verdict(lambda question: -torch.ones(2), trial)
    assert verdict(lambda question: torch.ones(2), trial) == ""


def test_a_wrong_program_that_anybody_would_notice_counts_only_where_it_may():
    text = "def reference(x):\n    return x\nright = reference\ndef wrong(x):\n    return x[:, 1:]\n"
    loud = replace(Trial("x", text), silent=False)

    assert "anybody would notice" in verdict(lambda question: torch.ones(2, 2), Trial("x", text))
    assert verdict(lambda question: torch.ones(2, 2), loud) == ""
    assert "the wrong version does not run" in verdict(lambda question: torch.ones(2), loud)


def test_a_difference_within_the_error_rule_is_none():
    text = "def reference(x):\n    return x.sum()\nright = reference\ndef wrong(x):\n    return x.flip(0).sum()\n"

    assert "same result" in verdict(lambda question: torch.randn(4000), Trial("x", text))


def test_the_exercises_own_words_are_used():
    trial = replace(
        MATRICES,
        accepts=lambda inputs: "Two square matrices." if inputs.value[1].shape[0] == inputs.value[1].shape[1] else "",
        explain=lambda inputs: f"{len(inputs.arguments[0])} rows are too few.",
    )

    assert "Two square matrices." in verdict(lambda rows: (torch.ones(4, 4), torch.ones(4, 4)), trial)
    assert "2 rows are too few." in verdict(lambda rows: (torch.ones(2, 4), torch.ones(4, 5)), trial)


def test_the_hosts_text_makes_the_arguments_where_a_trial_names_its_function():
    made = "def given(rows):\n    return rows, torch.full((4, 5), 2.0), SCALE\n\nSCALE = 3.0\n"
    trial = replace(MATRICES, text=MATRICES.text + made, question=3, make="given")
    seen = []

    def answer(rows, y, scale):
        seen.append((rows, scale))
        return torch.randn(rows, 4), y

    assert verdict(answer, trial) == ""
    assert seen == [(3, 3.0)]


def test_programs_cross_as_graphs_and_get_a_copy_of_their_own_in_each_run():
    trial = Trial("dead code", PASSES, graphs=1)

    assert verdict(lambda question: (writes, torch.ones(2)), trial) == ""
    assert verdict(lambda question: (torch.fx.symbolic_trace(writes), torch.ones(2)), trial) == ""
    assert "same result" in verdict(lambda question: (lambda x: x * 2, torch.ones(2)), trial)


def test_parameters_of_a_program_are_numbers_like_all_others():
    linear = torch.nn.Linear(2, 2)
    torch.nn.init.constant_(linear.weight, torch.nan)
    program = torch.nn.Sequential(linear)

    assert "NaN or infinity" in verdict(lambda question: (program, torch.ones(1, 2)), Trial("x", PASSES, graphs=1))


def test_a_reply_with_graphs_that_nobody_asked_for_is_malformed():
    entry = {"graph": {"nodes": [], "modules": {}, "tensors": {}}, "tensors": {}}

    for graphs in ([entry] * 9, [entry | {"more": 1}], [{"graph": {}, "tensors": {"weight": 5}}], {}):
        with pytest.raises(MalformedAnswerError):
            read_values(result_of(FindInputs(1), Message({"value": 1, "graphs": graphs})))


@pytest.mark.parametrize(
    "data",
    [{"tensor": 0}, {"tensor": "0"}, {"graph": 0}, {"float": "1"}, {"tuple": {}}, {"dict": []}, {}, {"a": 1, "b": 2}],
)
def test_a_value_in_no_known_form_is_malformed(data):
    with pytest.raises(MalformedAnswerError):
        read_values(result_of(FindInputs(1), Message({"value": data, "graphs": []})))


def test_a_program_outside_the_allow_list_is_refused():
    def uninitialised(x):
        return torch.empty_like(x)

    said = verdict(lambda question: (uninitialised, torch.ones(2)), Trial("dead code", PASSES, graphs=1))
    assert "empty_like" in said


def test_random_numbers_are_the_same_for_each_program():
    text = "import torch\ndef reference(x):\n    return torch.rand(3) * x\nright = reference\n"

    assert "same result" in verdict(lambda question: torch.ones(3), Trial("x", text + "wrong = reference\n"))


def test_plain_results_are_compared_too():
    text = "def reference(n):\n    return {'n': [n % 7, 'x']}\nright = reference\n"
    text += "def wrong(n):\n    return {'n': [n % 7 if n < 9 else 0, 'x']}\n"

    assert verdict(lambda question: 10, Trial("n", text)) == ""
    assert "same result" in verdict(lambda question: 8, Trial("n", text))


def test_points_are_shared_among_the_trials():
    check = disproves(lambda draw: [replace(MATRICES, question=q) for q in (3, 2, 1, 5)])

    with pytest.raises(CheckFailedError) as failed:
        check(CounterexampleAnswer(InProcess(counterexample_answer(matrices)), InProcess()), Draw(1))
    assert failed.value.share == 0.5


@pytest.mark.parametrize("rows", [2, 3])
def test_the_judge_runs_programs_in_a_worker_of_their_own(rows):
    exercise = Exercise(
        id="05_example",
        title="Example",
        kind=Kind.COUNTEREXAMPLE,
        entry_point="find",
        points=2,
        checks=(
            Check("differs", "values", 1, disproves(lambda draw: [MATRICES])),
            Check("dead code", "values", 1, disproves(lambda draw: [Trial("dead code", PASSES, 1, graphs=1)])),
        ),
        setup="import torch\n",
    )
    answer = f"""
import sys
print(sys.modules["answer"].__dict__.keys())
def writes(x):
    x.add_(1)
    return x * 2
def find(question):
    assert not hasattr(sys.modules["answer"], "reference")
    return (writes, torch.ones(2)) if question == 1 else (torch.ones({rows}, 4), torch.ones(4, 5))
"""
    record = judge(exercise, graded_parts(exercise, {exercise.id: answer}), sandbox=open_sandbox(), seed=3)

    assert record.points == rows - 1, record
