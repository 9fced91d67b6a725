"""Got and expected are never the same text, and the first difference stands in the middle and is named."""

import copy
import random
import re
from typing import Any

import pytest

from autograder.host.kinds.differences import contrasted, same
from tests.architecture.source_tree import ROOT, python_files

ROWS = [{"name": f"node_{i}", "sizes": list(range(20)), "op": "call_function"} for i in range(9)]
# a value that was cut before it was compared in a message: `x[:60]}; expected`, `x!r:.60}; expected`
_CUT = re.compile(r"(\[:\d+\]|!r:\.\d+)\}[^{]*?; ?[\"\n f]*expected \{")


def drawn(draw: random.Random, depth: int) -> Any:
    kind = draw.choice(("list", "dict", "text", "number")) if depth else "number"
    if kind == "list":
        return [drawn(draw, depth - 1) for _ in range(draw.randint(0, 12))]
    if kind == "dict":
        return {f"key_{i}": drawn(draw, depth - 1) for i in draw.sample(range(20), draw.randint(0, 8))}
    return "x" * draw.randint(0, 300) if kind == "text" else draw.choice((0, 1, 1.0, True, None, 10**200))


def changed(draw: random.Random, value: Any) -> Any:
    """The same value but for one place."""
    if isinstance(value, list) and value:
        at = draw.randrange(len(value))
        inside = [*value[:at], changed(draw, value[at]), *value[at + 1 :]]
        return draw.choice((inside, value[:-1], [*value, 0]))
    if isinstance(value, dict) and value:
        key = draw.choice(list(value))
        fewer = {k: v for k, v in value.items() if k != key}
        return draw.choice(({**fewer, key: changed(draw, value[key])}, fewer, {**value, "one more": 0}))
    return f"{value}y" if isinstance(value, str) else draw.choice(tuple(v for v in (0, "0", True) if v is not value))


@pytest.mark.parametrize(
    ("found", "expected", "equal"),
    [(605.0, 605, True), ([1, {"a": 2.0}], [1, {"a": 2}], True), (True, 1, False), ([0], [False], False)],
)
def test_numbers_are_compared_by_value_and_are_no_truth_values(found: Any, expected: Any, equal: bool) -> None:
    assert same(found, expected) is equal


@pytest.mark.parametrize("most", [20, 60, 160])
def test_the_two_texts_are_never_the_same(most: int) -> None:
    draw = random.Random(most)
    for _ in range(500):
        expected = drawn(draw, 4)
        found = changed(draw, expected)
        mine, _, right = contrasted(found, expected, most=most).partition("; expected ")

        assert mine != right.partition("; the first difference is ")[0]
        assert len(mine) <= most + 40


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda rows: rows[4]["sizes"].__setitem__(3, 99), "at [4]['sizes'][3]"),
        (lambda rows: rows.append(1), "that there are 10 entries, not 9"),
        (lambda rows: rows[2]["sizes"].pop(), "that there are 19 entries in [2]['sizes'], not 20"),
        (lambda rows: rows[2].pop("op"), "that [2]['op'] is missing"),
        (lambda rows: rows[2].update(more=1), "that [2]['more'] is one key too many"),
    ],
)
def test_the_first_difference_is_named(change: Any, place: str) -> None:
    rows = copy.deepcopy(ROWS)
    change(rows)

    assert contrasted(rows, ROWS).endswith(f"; the first difference is {place}")


def test_keys_in_another_order_are_no_difference() -> None:
    rows = [dict(reversed(row.items())) for row in ROWS]
    rows[8]["sizes"] = [1]
    mine = contrasted(rows, ROWS).partition("; expected ")[0]

    assert "[1]" in mine[60:110]


def test_values_that_look_alike_are_shown_with_their_types() -> None:
    class Other(str):
        __slots__ = ()

    assert contrasted(Other("a"), "a") == "'a' (a Other); expected a str"
    assert contrasted(True, 1) == "True; expected 1"


def test_no_message_cuts_a_value_before_it_compares_it() -> None:
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for path in python_files("autograder/host", "autograder/exercises")
    }
    found = {name: _CUT.search(text) for name, text in texts.items() if "answers" not in name}

    assert [name for name, match in found.items() if match] == []
    assert _CUT.search("is {str(found)[:60]}; expected {expected}.")
    assert _CUT.search('is {found!r:.60}; "\n    f"expected {expected}.')


@pytest.mark.parametrize(
    ("found", "expected", "clause"),
    [
        ({"reads": ["b", "a"]}, {"reads": ["a", "b"]}, "in ['reads'] the right entries stand in another order"),
        ([["a"], ["b", "b"]], [["a"], ["b"]], "in [1] entries are repeated"),
        (["a", "b"], ["a", "b", "a"], "an entry that occurs several times is listed too seldom"),
        (["a", "c"], ["a", "b", "c"], "missing: \"'b'\""),
        (["a", "b", "c"], ["a", "c"], "one too many: \"'b'\""),
        ([], ["a"], "nothing was found"),
        (["a"], "a", "the right value stands in a list"),
        (0.25, 4, "it is upside down"),
        (-3, 3, "the sign is the wrong way round"),
        (2_500.0, 2.5, "it is 1e3 times as large, as in another unit"),
        ("a  b\n", "a b", "only blanks or line ends differ"),
        ("Linear", "linear", "only small and capital letters differ"),
    ],
)
def test_a_simple_change_is_named(found: Any, expected: Any, clause: str) -> None:
    assert contrasted(found, expected).endswith(f"; {clause}")


@pytest.mark.parametrize(
    ("found", "expected"), [(["a", "b"], ["c", "d"]), (10**120, 3), (3, 0), (1, -2), (True, False), ("a", "b")]
)
def test_nothing_is_added_where_no_simple_change_leads_there(found: Any, expected: Any) -> None:
    assert contrasted(found, expected) == f"{found!r}; expected {expected!r}"
