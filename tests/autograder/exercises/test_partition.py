"""Cuts of joint graphs are judged by their cost, and what people likely think of saving is named."""

import pytest

from autograder.exercises.aot_autograd import partition as exercise
from autograder.exercises.hidden.aot_autograd import partition as hidden
from autograder.exercises.programs.joint_graphs import random_joint
from autograder.host.draw import Draw
from tests.autograder.exercises.judged import judged, reference
from tests.drawn import third

ID = "08_partition"

ROWS = '[r for r in question["rows"] if r["part"] == "forward" and r["tag"] != "input"]'
ALL = f'def partition(question):\n    return [r["name"] for r in {ROWS}]\n'
READ = (
    "def partition(question):\n"
    '    read = {a for r in question["rows"] if r["part"] == "backward" for a in r["args"]}\n'
    f'    return [r["name"] for r in {ROWS} if r["name"] in read]\n'
)
HEAVY = (
    "def partition(question):\n"
    f"    rows = {ROWS}\n"
    '    needed = {a for r in question["rows"] if r["part"] == "backward" for a in r["args"]}\n'
    "    for row in reversed(rows):\n"
    '        if row["name"] in needed and row["tag"] in ("pointwise", "view"):\n'
    '            needed |= set(row["args"])\n'
    '    return [r["name"] for r in rows if r["name"] in needed and r["tag"] not in ("pointwise", "view")]\n'
)
WRONG = [
    ("everything", ALL, "backward reads only some of it"),
    ("what backward reads", READ, "nothing is computed again"),
    ("only what is heavy", HEAVY, "the sum of two products"),
    (
        "FLOPs for nothing",
        reference(ID, ("question['price'] * ", "0 * ")),
        "as if FLOPs were free",
    ),
    ("masks again", reference(ID, ("('pointwise', 'view')", "('pointwise', 'view', 'random')")), "drew another mask"),
    ("products again", reference(ID, ("('pointwise', 'view')", "('pointwise', 'view', 'product')")), "too much work"),
    ("no views", reference(ID, ("('pointwise', 'view')", "('pointwise',)")), "are enough"),
    ("inputs", reference(ID, (" and row['tag'] != 'input'", "")), "it is there anyway"),
    ("twice", reference(ID, ("    return [", "    return 2 * [")), "is named twice"),
    ("of backward", reference(ID, ("    return [", '    return ["tangents_1"] + [')), "is no row of forward"),
    ("rows", reference(ID, ("return [name for", "return [ahead[name] for")), "a list of names"),
]
TRIED = third(WRONG, name="mistakes in partition")  # the others in other runs


@pytest.mark.parametrize(("name", "answer", "words"), TRIED, ids=[w[0] for w in TRIED])
def test_a_wrong_idea_of_cuts_is_named(name, answer, words):
    record = judged(ID, answer)
    assert record.points < record.max_points
    assert words in "\n".join(c.message for c in record.checks)


ONE_BY_ONE = """
def cost(question, saved):
    ahead = {r["name"]: r for r in question["rows"] if r["part"] == "forward" and r["tag"] != "input"}
    needed = {a for r in question["rows"] if r["part"] == "backward" for a in r["args"] if a in ahead}
    total = sum(ahead[n]["bytes"] for n in saved)
    for name in reversed(ahead):
        if name in needed and name not in saved:
            if ahead[name]["tag"] not in ("pointwise", "view"):
                return float("inf")
            total += question["price"] * ahead[name]["flops"]
            needed |= {a for a in ahead[name]["args"] if a in ahead}
    return total


def partition(question):
    ahead = [r["name"] for r in question["rows"] if r["part"] == "forward" and r["tag"] != "input"]
    read = {a for r in question["rows"] if r["part"] == "backward" for a in r["args"]}
    saved = sorted(n for n in ahead if n in read)
    for name in list(saved):
        fewer = [n for n in saved if n != name]
        if cost(question, fewer) <= cost(question, saved):
            saved = fewer
    return saved
"""


def test_dropping_values_one_by_one_is_named():
    record = judged(ID, ONE_BY_ONE)
    assert record.points < record.max_points
    assert "dropped one by one" in "\n".join(c.message for c in record.checks)


@pytest.mark.parametrize("price", [0, 1, 2, 5])
def test_the_minimum_cut_is_the_cheapest_of_all_cuts(price):
    for seed in range(25):
        graph = random_joint(Draw(seed, "small"), 4, masks=seed % 2)
        question = {"rows": graph.rows, "price": price}
        if len(hidden.all_of_forward(question)) <= exercise.MOST_TRIED:
            cheapest, tried = hidden.cheapest(question), hidden.by_trying_all(question)
            assert exercise.cost(question, cheapest) == exercise.cost(question, tried)


def test_a_cut_costs_what_is_saved_and_each_row_that_is_computed_again_once():
    def row(name, args, part="forward", tag="pointwise", size=8, flops=3):
        return {"name": name, "op": "", "args": args, "part": part, "tag": tag, "bytes": size, "flops": flops}

    rows = [row("x", [], tag="input"), row("m", ["x", "x"], tag="product"), row("a", ["m"]), row("b", ["a", "a"])]
    rows += [row("c", ["a"]), row("g", ["b", "c"], part="backward")]
    question = {"rows": rows, "price": 2}
    assert exercise.cost(question, ["b", "c"]) == 16
    assert exercise.cost(question, ["a"]) == 8 + 2 * 6
    assert exercise.cost(question, ["m"]) == 8 + 2 * 9
    assert exercise.cost(question, ["b", "m"]) == 16 + 2 * 6
    assert exercise.cost(question, ["b"]) is None
    assert exercise.required(rows, ["b"]) == {"b": "g", "c": "g", "a": "c", "m": "a"}


# a cut that saves each value whose recomputation would cost as much, and never looks further
GREEDY = """
def partition(question):
    ahead = {r["name"]: r for r in question["rows"] if r["part"] == "forward" and r["tag"] != "input"}
    todo = [a for r in question["rows"] if r["part"] == "backward" for a in r["args"] if a in ahead]
    saved, seen = [], set()
    while todo:
        row = ahead[todo.pop()]
        if row["name"] in seen:
            continue
        seen.add(row["name"])
        if row["tag"] in ("pointwise", "view") and question["price"] * row["flops"] < row["bytes"]:
            todo += [a for a in row["args"] if a in ahead]
        else:
            saved.append(row["name"])
    return saved
"""


def test_a_cut_that_is_possible_earns_its_validity_and_a_share_of_its_cost():
    record = judged("08_partition", GREEDY)
    points = {check.name: (check.points, check.max_points) for check in record.checks}
    for name in ("backward can be computed", "gradients of the uncut graph", "many dropouts: gradients"):
        assert points[name][0] == points[name][1]
    assert 0 < points["few bytes and few FLOPs"][0] < points["few bytes and few FLOPs"][1]
    assert 0.3 < record.points / record.max_points < 0.8


def test_the_share_of_a_cut_falls_with_its_cost():
    assert [exercise.share_at(ratio) for ratio in (1.0, 1.05, 1.3, 1.55, 3.0)] == [1.0, 1.0, 0.5, 0.0, 0.0]
