"""What people likely think of backends and partitions is named; what would partition for them is out of reach."""

import importlib
import itertools

import pytest
import torch

from autograder.exercises import find
from autograder.exercises.backends.find_the_bad_passes import pipeline
from autograder.exercises.backends.lower_regions import FULL, accesses, spilled_inputs
from autograder.exercises.backends.partition_without_cycles import digest, stored_bytes
from autograder.exercises.hidden.backends.lower_regions import fewest_accesses
from autograder.exercises.hidden.backends.partition_without_cycles import earliest, enters, facts_of, latest
from autograder.exercises.programs.fused_regions import LAYOUTS, Wish, arguments_of, random_region, results_of
from autograder.exercises.programs.supported_rows import SMALL, Shape, random_rows, small
from autograder.exercises.quality.in_process import own_answer, points_of
from autograder.host.draw import Draw
from course_lib.backends.sweeps import settle
from course_lib.machine import Machine, assemble
from tests.autograder.exercises.judged import judged, known_answer, messages, reference, said
from tests.autograder.host.hostile.catalogue import HOSTILE, text_of
from tests.drawn import chance, some

PARTITION, LOWER = "10_partition_without_cycles", "10_lower_regions"
FEW = ("five small graphs", "as few parts as possible")
# words of a message, answer
RULES = [
    ("by other names", "return {'part': int(row['name'][1:]) if row['supported'] else None}"),
    ("The parts form a cycle", "return {'part': 0 if row['supported'] else None}"),
    ("expected a whole number", "return {'part': None}"),
    ("return a dict with the key 'part'", "return 1"),
    ("A state is too large", "return {'part': 0, 'before': [row['name']]}"),
]

# words of a message, rows of an answer
ROWS = [
    ("a row is a list such as", "[1]"),
    ("Nothing stores the output", "[]"),
    ("names no instruction", "[['conv', 'r0', 'r1']]"),
    ("expected at most 400", "[['neg', 'r0', 'r0']] * 401"),
    ("something else than names", "[['add', 'r0', 'r0', None]]"),
    ("something else than names", "[['add', 'r0', 'r0', 2 ** 60]]"),
    (
        "stores a value of shape|into which nothing was written",
        "[['store', n, s[1], 'r0'] for n, s in region['outputs'].items()]",
    ),
]
SLIPS = [
    ("divided by the number of columns", (", ['mul', into, into, 1 / space[-1]]", "")),
    ("divided by another size", ("1 / space[-1]", "1 / space[0]")),
    ("relu is the maximum with 0, not the minimum", ("['max', into", "['min', into")),
    ("stride 0", (" * (size > 1)", "")),
    ("load it again", ("loser not in inputs and ", "")),
    ("whose next use is the furthest", ("max((n", "min((n")),
    ("a slot used for two values", ("slots.setdefault(loser, len(slots))", "slots.setdefault(loser, 0)")),
    ("this machine has r0 to r", ("range(region['registers'])", "range(1, region['registers'] + 1)")),
]


def test_loads_at_the_begin_of_a_kernel_are_named():
    early = "[*(n for r in inside * (not place) for n in r['reads'] if n not in made), *row['reads'], row['name']]"
    text = said("10_fuse_where_it_pays", ("[*row['reads'], row['name']]", early))

    assert "and not at its begin" in text


def test_a_right_rule_in_which_rows_outside_do_not_wait_loses_nothing_for_bytes():
    answer = known_answer(PARTITION, "only rows of the target wait")
    for seed in (77, 259):
        assert judged(PARTITION, answer, seed=seed, only=("few bytes between parts",)).points == 2


@pytest.mark.parametrize(("words", "line"), RULES, ids=[words for words, _ in RULES])
def test_a_wrong_rule_is_told_what_is_wrong(words, line):
    record = judged(PARTITION, f"def visit(row):\n    {line}\n", only=FEW)

    assert record.points == 0
    assert all(words in text for text in messages(record).values())


def test_a_state_that_moves_by_one_part_a_visit_costs_the_points_for_visits_only():
    only = (*FEW, "visits of 100 and 1,000 rows")
    record = judged(PARTITION, known_answer(PARTITION, "late by one a visit"), only=only)

    assert list(messages(record)) == [only[-1]]
    assert "compute it at once" in messages(record)[only[-1]]


@pytest.mark.parametrize(("words", "rows"), ROWS, ids=[rows for _, rows in ROWS])
def test_rows_that_are_no_program_are_told_what_was_expected(words, rows):
    answer = f"def lower_region(region):\n    return {rows}\n"
    record = judged(LOWER, answer, only=("values of small regions",))

    assert record.points == 0
    assert all(any(word in text for word in words.split("|")) for text in messages(record).values())


@pytest.mark.parametrize(("words", "change"), some(SLIPS, 3, name="slips of 10.4"), ids=lambda value: str(value)[:40])
def test_a_likely_slip_of_a_lowering_is_named(words, change):
    assert words in said(LOWER, change)


def test_the_reference_writes_as_few_accesses_as_are_known_and_computes_each_region():
    namespace = {}
    exec(compile(reference(LOWER), "<reference>", "exec"), namespace)
    for seed in range(4):
        draw = Draw(seed, "regions")
        region = random_region(
            draw, Wish(20, 4, 6, 7, layouts=tuple(LAYOUTS), again=0.4, ones=seed % 2 == 0, dead=True)
        )
        rows = namespace["lower_region"](region)
        program, arguments = assemble(region, rows, dtype=torch.float64), arguments_of(region, draw)
        found = Machine(4).run(program, arguments)

        torch.testing.assert_close(list(found), results_of(region, arguments))
        assert accesses(program) <= FULL * fewest_accesses(region)
        assert spilled_inputs(rows) == []


def test_an_input_that_was_changed_in_its_register_is_no_spilled_input():
    rows = [
        ["load", "r0", "x", [1]],
        ["neg", "r0", "r0"],
        ["spill", 0, "r0"],
        ["load", "r1", "x", [1]],
        ["spill", 1, "r1"],
    ]
    assert spilled_inputs(rows) == ["x"]


@pytest.mark.parametrize("exercise", ["10_minimal_backend", "10_support_predicate", PARTITION])
def test_the_library_with_partitions_and_conditions_cannot_be_imported_in_the_worker(exercise):
    record = judged(exercise, "import course_lib.backends\n" + reference(exercise), hidden=False)

    assert record.points == 0
    assert "No module named" in record.message
    importlib.import_module("course_lib.backends")  # it is there for everybody else


def test_likely_mistakes_of_a_predicate_are_named():
    text = said("10_support_predicate", ("[*inputs, node['result']]", "inputs"), (" > 1:", " > 2:"))

    assert "the result is a tensor of the node, too" in text
    assert "no two together" in text


def test_a_backend_that_changes_nothing_is_told_that_tanh_still_runs():
    record = judged("10_minimal_backend", known_answer("10_minimal_backend", "unchanged"), hidden=False)

    assert record.points == 0
    assert any("what runs computes tanh" in text for text in messages(record).values())


def test_a_backend_that_replaces_the_first_tanh_alone_is_told_that_others_are_left():
    record = judged("10_minimal_backend", known_answer("10_minimal_backend", "only the first tanh"), hidden=False)

    assert record.points == 0
    assert "a graph has a new formula and still calls tanh " in record.checks[0].message
    assert record.checks[0].message.endswith("e. Replace every tanh of a graph.")  # once or twice


@pytest.mark.parametrize("name", SMALL)
def test_no_partition_of_a_small_graph_has_fewer_parts_than_the_answer_says(name):
    rows = small(Draw(5, name), name)
    supported = [row["name"] for row in rows if row["supported"]]
    fewest = min(len(set(parts.values())) for parts in _partitions(supported) if not _cyclic(rows, parts))

    assert facts_of(rows)["fewest"] == fewest


def test_late_rows_store_no_more_than_early_ones_where_chains_wait():
    rows = random_rows(Draw(3, "late"), Shape(40, 3, early=4))
    early = earliest(rows, enters)
    places = {name: place for name, place in latest(rows, early).items() if name in _supported(rows)}

    assert stored_bytes(rows, places) < stored_bytes(rows, {name: early[name] for name in places})
    assert digest(places) == digest({name: 7 - place for name, place in places.items()})


def test_the_reference_needs_at_most_four_visits_of_each_row():
    namespace = {}
    exec(compile(reference(PARTITION), "<reference>", "exec"), namespace)
    rows = random_rows(Draw(3, "visits"), Shape(1000, 8, several=0.2, early=6))

    assert settle(rows, namespace["visit"]).visits <= 4 * len(rows)


def _supported(rows):
    return {row["name"] for row in rows if row["supported"]}


def _partitions(names):
    """Yield all partitions of a few names."""
    if not names:
        yield {}
        return
    for parts in _partitions(names[1:]):
        for part in range(len(set(parts.values())) + 1):
            yield {names[0]: part, **parts}


def _cyclic(rows, parts):
    group = {row["name"]: parts.get(row["name"], row["name"]) for row in rows}
    edges = {(group[name], group[row["name"]]) for row in rows for name in row["inputs"]}
    edges = {(a, b) for a, b in edges if a != b}
    left = set(group.values())
    while ready := {each for each in left if not any(b == each and a in left for a, b in edges)}:
        left -= ready
    return bool(left)


BAD = "10_find_the_bad_passes"


@pytest.mark.parametrize("together", [(2,), (3,), (1, 2)], ids=str)
def test_no_two_of_the_bad_passes_that_are_drawn_are_neighbours(together):
    seeds = chance("neighbours").sample(range(10**9), 50)
    for seed in seeds:
        drawn = pipeline(12, *together)(Draw(seed, "neighbours"))
        places = sorted(drawn.passes.index(name) for names in drawn.wrong for name in names)
        assert len(places) == sum(together)
        assert all(behind - before > 1 for before, behind in itertools.pairwise(places)), (seed, places)


STEPS = [
    ("Return {'verify': names}", "return 3"),
    ("a list of names", "return {'bad': question['passes'][0]}"),
    ("a pass twice", "return {'verify': question['passes'][:1] * 2}"),
    ("which is not in `passes`", "return {'verify': ['optimize']}"),
    ("again: the result stands in `seen`", "return {'verify': question['passes']}"),
    ("some of them have to be named", "return {'bad': []}"),
    ("name as few passes as possible", "return {'bad': question['passes']}"),
]


@pytest.mark.parametrize(("words", "line"), STEPS, ids=[words for words, _ in STEPS])
def test_a_wrong_step_of_a_search_is_told_what_is_wrong(words, line):
    record = judged(BAD, f"def next_step(question):\n    {line}\n", only=("one bad pass",))

    assert record.points == 0
    assert words in record.checks[0].message


def test_a_search_that_forgets_what_it_found_is_told_that_passes_are_wrong_together():
    text = said(BAD, ("while not seen", "while not bad and (not seen"), ("bad), True):", "bad), True)):"))

    assert "wrong only where another pass runs" in text


def test_a_search_one_by_one_is_told_how_many_verifications_are_enough():
    told = messages(judged(BAD, known_answer(BAD, "one by one")))

    assert list(told) == ["few verifications", "few verifications of many passes"]
    assert all("should halve" in text for text in told.values())


@pytest.mark.parametrize(
    "seed", [19, 46, 51, *(chance("programs in which fusing pays").randrange(10**6) for _ in range(2))]
)
def test_every_good_division_has_a_kernel_of_three_rows_whose_time_can_be_asked(seed):
    right = own_answer("10_fuse_where_it_pays", reference("10_fuse_where_it_pays"))

    earned = points_of("10_fuse_where_it_pays", right, seed=seed)

    assert earned == {check.name: check.points for check in find("10_fuse_where_it_pays", hidden=True).checks}


@pytest.mark.parametrize(
    ("exercise_id", "attack"),
    [("10_lower_regions", "allocated_by_the_library"), ("10_fuse_where_it_pays", "allocator_imported")],
)
def test_the_allocator_of_the_library_is_not_there(exercise_id, attack):
    found = judged(exercise_id, text_of(HOSTILE / exercise_id / f"{attack}.py"))
    assert found.points == 0
    assert all("No module named 'course_lib.backends'" in each for each in list(messages(found).values())[:1])


def test_kernels_in_which_nothing_spills_earn_nothing_for_the_value_that_leaves_its_register():
    answer, check = known_answer("10_fuse_where_it_pays", "never spills"), "the value that leaves its register"
    assert not any(judged("10_fuse_where_it_pays", answer, seed=seed, only=[check]).points for seed in (11, 22, 33))
