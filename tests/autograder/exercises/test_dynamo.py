"""What people likely think of Dynamo is named where it explains a wrong answer; what gives answers away is masked."""

import importlib

import pytest

from tests.autograder.exercises.judged import judged, reference, said
from tests.drawn import third

LAST_BUT_ONE = "    sizes = sizes_of(steps)\n"
EACH = "    steps = [part for s in steps for part in {parts}]\n"
CALLS_IN_LINE = EACH.format(parts='(s["body"] if s["do"] == "call" else [s])')
UNROLLED = EACH.format(parts='(s["body"] * s["times"] if s["do"] == "repeat" else [s])')
SIZES_BREAK = EACH.format(
    parts='{"append": [{"do": "print"}], "size_if": [{"do": "print"}, {"do": "compute"}]}.get(s["do"], [s])'
)
KEPT = ("def collect", "KEPT = []\n\n\ndef collect")
# exercise, words of a message, changes of the reference
NAMED = [
    (
        "07_predict_graphs",
        "is no graph",
        ("'graphs': len(sizes)", "'graphs': 1 + sum(s['do'] in BEFORE for s in steps)"),
    ),
    ("07_predict_graphs", "graphs of its own", (LAST_BUT_ONE, CALLS_IN_LINE + LAST_BUT_ONE)),
    ("07_predict_graphs", "guards the size", (LAST_BUT_ONE, SIZES_BREAK + LAST_BUT_ONE)),
    ("07_predict_graphs", "A loop with a break was unrolled", (LAST_BUT_ONE, UNROLLED + LAST_BUT_ONE)),
    ("07_read_guards", "asks for its type", ("type(value) is type(guard['value']) and value", "value")),
    (
        "07_read_guards",
        "stops at the first",
        ("for i, guard in enumerate(guards) if", "for i, guard in reversed(list(enumerate(guards))) if"),
    ),
    ("07_read_guards", "goes on to the next", ("enumerate(question['entries'])", "enumerate(question['entries'][:1])")),
    ("07_read_guards", "only those whose size has changed", ("if old not in (None, now[d])", "if d < 2")),
    ("07_capture_backend", "begin with an empty list", ("    graphs = []\n", "    graphs = KEPT\n"), KEPT),
    (
        "07_capture_backend",
        "Only one was kept",
        ("        graphs.append(", "        graphs[:] = []\n        graphs.append("),
    ),
]
TRIED = third(NAMED, name="mistakes in dynamo")  # the others in other runs


@pytest.mark.parametrize("mistake", TRIED, ids=[f"{n[0]}: {n[1]}" for n in TRIED])
def test_a_likely_mistake_is_named(mistake):
    exercise_id, words, *changes = mistake
    assert words in said(exercise_id, *changes)


def test_wrong_repairs_of_breaks_are_named():
    text = said(
        "07_remove_breaks",
        ("h * 2, h.mean()", "h * 2, x.mean()"),
        ("x / x.abs().max()", "x / x.max()"),
        ("x.sum() > 0", "x > 0"),
        ("dim=1, keepdim", "dim=0, keepdim"),
        ("((x[..., 1:] + x[..., :-1]) / 2)", "x"),
        ("(x.abs() > 1.5)", "(x > 1.5)"),
    )
    told = (
        "it was printed of h",
        "largest magnitude",
        "for each element",
        "Columns",
        "halves both ends",
        "below -LIMIT",
    )
    for words in told:
        assert words in text


def test_wrong_ways_to_tame_are_named():
    text = said(
        "07_tame_recompiles",
        ("F.pad(x, (0, 0, 0, x.shape[0] % 2))", "x[: x.shape[0] // 2 * 2]"),
        ("(weights[:, None] * x)", "(weights.flip(0)[:, None] * x)"),
        ("0.9 ** step", "0.9 * step"),
        ("[place for place in varied if place not in looped], 'graphs': len(kinds)", "varied, 'graphs': len(calls)"),
    )
    for words in ("last row was dropped", "last row weighs most", "the step is a power", "loops over", "for each call"):
        assert words in text


def test_a_backend_that_dynamo_knows_already_is_told_to_reset():
    outside = """
graphs = []


def keep(graph_module, example_inputs):
    graphs.append((graph_module, [tuple(i.shape) for i in example_inputs]))
    return lambda *inputs: tuple(2 * each for each in graph_module(*inputs))


def collect(function, calls):
    graphs.clear()
    compiled = torch.compile(function, backend=keep)
    return [compiled(*args, **kwargs) for args, kwargs in calls], list(graphs)
"""
    record = judged("07_capture_backend", outside)
    assert record.points < record.max_points
    assert any("Reset it first" in check.message for check in record.checks)


def test_wrong_repairs_of_captures_are_named():
    text = said(
        "07_break_dynamo",
        ("x.tanh().sum(0)", "x.sum(0).tanh()"),
        ("F.softplus(x)", "x.relu()"),
        ("torch.where(x.sum() > 0", "torch.where(x > 0"),
        ("torch.ones(4, 4)", "torch.ones(3, 4)"),
    )
    for words in ("tanh is taken of each row first", "not at zero", "for each element", "The loop ran over three rows"):
        assert words in text


@pytest.mark.parametrize("module", ["course_lib.capture", "course_lib.capture.dynamo", "course_lib.backends"])
def test_what_collects_graphs_already_cannot_be_imported_in_the_worker(module):
    answer = f"import {module}\n" + reference("07_capture_backend")
    record = judged("07_capture_backend", answer, hidden=False, seed=3)
    assert record.points == 0
    assert "No module named" in record.message
    importlib.import_module(module)  # it is there for everybody else


def test_the_maker_of_programs_cannot_be_imported_where_they_are_to_be_predicted():
    answer = "import course_lib.models.steps\n" + reference("07_predict_graphs")
    record = judged("07_predict_graphs", answer, hidden=False, seed=3)
    assert (record.points, "No module named" in record.message) == (0, True)
