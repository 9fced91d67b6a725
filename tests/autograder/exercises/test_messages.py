"""Known misconceptions cost their share only, and are named."""

from dataclasses import replace

import pytest

from autograder.exercises import find
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.sandbox import open_sandbox
from tests.autograder.exercises.judged import judged, known_answer, messages, reference

ATTENTION = """
def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    scores = query @ key.transpose(-1, -2) {scale}
    if mask is not None:
        scores = scores.masked_fill({mask}, -math.inf)
    probabilities = torch.softmax(scores, {dim})
    if mask is not None:
        probabilities = probabilities.masked_fill(~mask, 0.0)
    probabilities = F.dropout(probabilities, dropout_p)
    return probabilities @ value, probabilities
"""
RIGHT = {"scale": "/ math.sqrt(query.shape[-1])", "mask": "~mask", "dim": "-1"}

LENGTH_OF_ITS_OWN = """
def break_attention(heads):
    mask = torch.ones(2, 1, 1, heads + 1, dtype=torch.bool)
    mask[..., -1] = False
    return torch.randn(2, heads + 1, 4 * heads), heads, mask
"""

SCALED, MASKED = "scores are scaled by 1/sqrt(head_size)", "masked positions get probability 0"
CASES = [
    ("scale by d", {"scale": "/ query.shape[-1]"}, SCALED, "1/head_size", MASKED),
    ("no scale", {"scale": ""}, SCALED, "no scale at all", MASKED),
    ("mask the wrong way round", {"mask": "mask"}, MASKED, "", SCALED),
]


@pytest.mark.parametrize(("name", "change", "lost", "words", "still_right"), CASES, ids=[c[0] for c in CASES])
def test_a_misconception_about_attention_is_named_and_other_checks_still_count(name, change, lost, words, still_right):
    record = judged("01_scaled_dot_product", ATTENTION.format(**(RIGHT | change)))
    checks = {check.name: check for check in record.checks}
    assert checks[lost].status == "failed"
    assert words in checks[lost].message
    assert checks[still_right].status == "passed"
    assert 0 < record.points < record.max_points


@pytest.mark.parametrize(
    ("change", "category", "words"),
    [
        ({"scale": "/ query.shape[-1]"}, "scores", "by its square root"),
        ({"scale": ""}, "scores", "not scaled"),
        ({"dim": "-2"}, "scores", "runs over the queries"),
    ],
)
def test_a_wrong_formula_that_is_known_is_named_by_the_check_that_counts_it_and_by_no_other(change, category, words):
    record = judged("01_scaled_dot_product", ATTENTION.format(**(RIGHT | change)))
    assert list(messages(record)) == [check.name for check in record.checks if check.category == category]
    assert words in " ".join(messages(record).values())


GRAPH_READER = """
def read_graph(rows):
    reads = [name for row in rows for name in row["args"]]
    return {
        "two_users": [row["name"] for row in rows if reads.count(row["name"]) == 2],
        "dead": [r["name"] for r in rows if r["name"] not in reads and r["op"] not in ("placeholder", "output")],
        "longest_path": len(rows),
    }
"""


def test_misconceptions_about_graphs_are_named():
    said = " ".join(messages(judged("04_read_a_graph", GRAPH_READER)).values())
    assert "Each use was counted" in said
    assert "read by dead nodes alone is dead, too" in said
    assert "All nodes were counted" in said


BROKEN = [
    ("a syntax error", "def scaled_dot_product(:\n", "student_error", "SyntaxError"),
    (
        "another name",
        "def attention(q, k, v):\n    return q\n",
        "student_error",
        "defines no function `scaled_dot_product`",
    ),
    (
        "a name from another cell",
        "def scaled_dot_product(*a, **k):\n    return helper(*a)\n",
        "student_error",
        "Only the imports of the set-up cell and the answer cell",
    ),
    ("exit", "import os\ndef scaled_dot_product(*a, **k):\n    os._exit(0)\n", "killed", "ended its own process"),
    ("exit while loading", "raise SystemExit(0)\n", "student_error", "SystemExit"),
    (
        "memory",
        "x = []\ndef scaled_dot_product(*a, **k):\n    while True: x.append(torch.empty(2**28))\n",
        "out_of_memory",
        "",
    ),
    (
        "recursion",
        "def scaled_dot_product(*a, **k):\n    return scaled_dot_product(*a)\n",
        "student_error",
        "RecursionError",
    ),
    ("a masked package", "from course_lib.models import TransformerLayer\n", "student_error", "course_lib.models"),
]


@pytest.mark.parametrize(("name", "answer", "status", "words"), BROKEN, ids=[b[0] for b in BROKEN])
def test_an_answer_that_cannot_run_earns_nothing_and_says_why(name, answer, status, words):
    record = judged("01_scaled_dot_product", answer)
    assert record.points == 0
    assert record.status == status
    assert words in record.message


def test_an_endless_loop_ends_with_the_exercises_time():
    exercise = replace(find("01_scaled_dot_product", hidden=True), wall_s=2.0)
    answer = "def scaled_dot_product(*a, **k):\n    while True: pass\n"
    record = judge(exercise, graded_parts(exercise, {exercise.id: answer}), sandbox=open_sandbox(), seed=11)
    assert record.points == 0
    assert record.status == "timed_out"
    assert "2 s" in record.message


def test_dropout_that_nobody_asked_for_is_named():
    change = ("key, value, mask)", "key, value, mask, 0.1 if self.training else 0.0)")
    record = judged("01_multi_head_attention", reference("01_multi_head_attention", change))

    assert ["No dropout is asked for" in message for message in messages(record).values()] == [True]


def test_an_input_on_which_the_wrong_version_raises_is_explained():
    told = " ".join(messages(judged("01_break_attention", LENGTH_OF_ITS_OWN)).values())

    assert "the last axis of the scores counts the" in told
    assert "Anybody would notice that" in told


def test_an_exception_comes_with_advice():
    slip = ATTENTION.format(**(RIGHT | {"scale": "/ torch.sqrt(query.shape[-1])"}))

    assert "for a number of Python use `math`" in judged("01_scaled_dot_product", slip).message


def test_a_variance_that_cancels_is_named_where_numbers_are_large():
    one_pass = known_answer("08_decompose", "variance in one pass")
    record = judged("08_decompose", one_pass, only=["a mean that is large"])

    assert "take the mean away first" in " ".join(messages(record).values())
