"""Sweeps visit every row in both directions until nothing changes, and say so if that never comes."""

import pytest

from course_lib.backends.sweeps import settle, settle_in_waves

DIAMOND = [
    {"name": "a", "inputs": []},
    {"name": "b", "inputs": ["a"]},
    {"name": "c", "inputs": ["a", "a"]},
    {"name": "d", "inputs": ["b", "c"]},
]


def depth(row):
    return {"part": 1 + max((read["state"]["part"] for read in row["inputs"]), default=0)}


def height(row):
    return {"part": 1 + max((user["state"]["part"] for user in row["users"] if user["state"]), default=0)}


@pytest.mark.parametrize(
    ("rule", "parts", "visits"),
    [(depth, {"a": 1, "b": 2, "c": 2, "d": 3}, 8), (height, {"a": 3, "b": 2, "c": 2, "d": 1}, 12)],
)
def test_a_rule_that_looks_one_way_needs_a_sweep_that_way_and_one_without_change(rule, parts, visits):
    settled = settle(DIAMOND, rule)

    assert {name: state["part"] for name, state in settled.states.items()} == parts
    assert (settled.visits, settled.finished) == (visits, True)


def test_states_that_never_settle_end_at_the_limit():
    settled = settle(DIAMOND, lambda row: {"part": (row["state"] or {"part": 0})["part"] + 1}, most=5)

    assert (settled.visits, settled.finished) == (20, False)


def test_a_wave_holds_no_neighbours_and_every_row_is_seen_with_its_facts():
    waves = []

    def visit_each(rows):
        waves.append([row["name"] for row in rows])
        return [depth(row) for row in rows]

    assert settle_in_waves(DIAMOND, visit_each).states == settle(DIAMOND, depth).states
    assert waves[:3] == [["a"], ["b", "c"], ["d"]]


def test_groups_leave_out_rows_without_a_part():
    settled = settle(DIAMOND, lambda row: {"part": None if row["name"] == "b" else 7})

    assert settled.groups() == {7: ["a", "c", "d"]}
