"""Notebook 00: tables that are asked about are what they should be, and likely wrong answers are named."""

import pytest

from autograder.exercises import find
from autograder.exercises.hidden.start_here.read_a_table import truth
from autograder.exercises.start_here import read_a_table as tables
from autograder.host.draw import Draw
from tests.autograder.exercises.judged import judged, messages

MISTAKES = [
    ("00_doctor", "all", "{f.name: f.found for f in doctor().findings}", "All findings came back"),
    ("00_doctor", "health", "{f.name: f.health.value for f in doctor().findings if f.name in names}", "`found`"),
    ("00_doctor", "list", "[f.found for f in doctor().findings if f.name in names]", "return a dict"),
    ("00_doctor", "copied", "dict.fromkeys(names, '3.11.99')", "not of the machine that checked"),
    (
        "00_read_a_table",
        "target",
        "{'leaf_module': [r['calls'] for r in names if r['op'] == 'call_module'][0], 'two_users': '', 'dead': ''}",
        "stands in the column node",
    ),
    (
        "00_read_a_table",
        "function",
        "{'leaf_module': [r['node'] for r in names if r['op'] == 'call_function'][0], 'two_users': '', 'dead': ''}",
        "is no module",
    ),
    (
        "00_read_a_table",
        "output",
        "{'leaf_module': '', 'two_users': '', 'dead': [r['node'] for r in names if r['users'] == 0][-1]}",
        "yet it is not dead",
    ),
]


@pytest.mark.parametrize(("exercise_id", "name", "answer", "words"), MISTAKES, ids=[f"{m[0]} {m[1]}" for m in MISTAKES])
def test_a_likely_mistake_is_named(exercise_id, name, answer, words):
    entry_point = find(exercise_id).entry_point
    record = judged(exercise_id, f"def {entry_point}(names):\n    return {answer}\n", hidden=False, seed=5)
    assert words in " ".join(messages(record).values())
    assert record.points < record.max_points


@pytest.mark.parametrize(("form", "points"), [("[{}]", 3), ("({},)", 3), ("[{}, {}]", 0)])
def test_a_list_of_the_one_name_is_as_good_as_the_name(form, points):
    parts = {"leaf_module": "r['op'] == 'call_module'", "two_users": "r['users'] == 2"}
    parts["dead"] = "not r['users'] and r['op'] != 'output'"
    names = {part: f"next(r['node'] for r in rows if {fits})" for part, fits in parts.items()}
    answer = ", ".join(f"'{part}': {form.replace('{}', name)}" for part, name in names.items())
    record = judged("00_read_a_table", f"def read_table(rows):\n    return {{{answer}}}\n", seed=5)
    assert record.points == points
    assert all("not a list of several" in message for message in messages(record).values())


@pytest.mark.parametrize("extra", [0, 1, 5, 12])
def test_a_table_has_one_node_of_each_kind_that_is_asked_for(extra):
    for seed in range(50):
        rows = tables.small_table(Draw(seed, "table"), extra)
        assert len(rows) == 5 + extra
        assert len({row["node"] for row in rows}) == len(rows)
        assert [row["op"] for row in rows].count("call_module") == 1
        assert sum(row["users"] == 2 for row in rows) == 1
        assert [row["node"] for row in rows if not row["users"]] == [truth(rows, "dead"), "output"]
        assert all(row["users"] <= 2 for row in rows)


def test_the_roles_fall_to_different_nodes():
    drawn = [tables.small_table(Draw(seed, "table")) for seed in range(40)]
    for part in tables.PARTS:
        places = {[r["node"] for r in rows].index(truth(rows, part)) for rows in drawn}
        assert len(places) == 3, part
