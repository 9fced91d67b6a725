"""Bytes are counted where no answer can reach, experiments are repeated, and likely mistakes are named."""

import pytest
import torch

from autograder.exercises.inductor import config_experiment as experiment
from autograder.host.checks.inductor_checks import Lowered
from autograder.host.exercise import CheckFailedError
from course_lib.graph.generated_code import lowered
from course_lib.models import option_programs
from tests.autograder.exercises.judged import judged, reference

MINIMUM, EXPERIMENT = "09_reach_byte_minimum", "09_config_experiment"
VERDICT = "the verdict follows"

LEAN_MIX, LEAN_SHARES = (
    f"`{name}` moves at most 1.05 times the minimum, with the right values" for name in ("mix", "shares")
)
SOFTEN, SHARES = "temperature.clamp(min=0.1)", "columns / columns.sum()"
MIX, SCORES = "torch.addmm(a @ top, b, bottom)", "q @ k.t() * q.shape[1] ** (-0.5)"


def said(*changes):
    """All that the report says of lean functions with some text in them replaced; none of them earns anything."""
    record = judged(MINIMUM, reference(MINIMUM, *changes), hidden=False)
    assert record.points == pytest.approx(2 * (4 - len(changes)))
    return "\n".join(c.message for c in record.checks)


def test_wrong_ideas_of_what_the_functions_mean_are_named():
    text = said(
        (SOFTEN, "temperature"),
        (MIX, "a @ top"),
        (SHARES, "(x / columns).sum(0)"),
        (SCORES, "(q @ k.t()) / q.shape[1]"),
    )
    for words in ("lower limit of the temperature is gone", "Only the share of a", "its own sum", "scaled twice"):
        assert words in text


def test_right_values_that_move_too_much_are_told_why():
    text = said(
        (MIX, "torch.stack([a @ top, b @ bottom, torch.zeros(a.shape[0], 2)]).sum(0)"),
        (SHARES, "columns / x.sum()"),
        (SCORES, "(q * q.shape[1] ** -0.5) @ k.t()"),
    )
    for words in ("still written side by side", "x is read for the total", "Something large is scaled"):
        assert words in text


def test_other_rewritings_that_save_as_much_get_everything():
    answer = reference(
        MINIMUM,
        (SOFTEN, "torch.maximum(temperature, torch.tensor(0.1))"),
        (MIX, "a @ top + b @ bottom"),
        (SHARES, "torch.einsum('ij->j', x) / columns.sum()"),
        (SCORES, "q @ (k * q.shape[1] ** -0.5).t()"),
    )
    assert judged(MINIMUM, answer, seed=5).points == 14


WASTEFUL = "(x / x.sum()).sum(0)"
OPAQUE = """
@torch.library.custom_op("answer::shares", mutates_args=())
def opaque(x: torch.Tensor) -> torch.Tensor:
    return (x / x.sum()).sum(0)


@opaque.register_fake
def _(x):
    return x.new_empty(x.shape[1])


"""
IN_A_BRANCH = f"torch.cond(x[0, 0] > -1, lambda x: {WASTEFUL}, lambda x: x.sum(0), (x,))"
COUNTING_NOTHING = """
import course_lib.graph, course_lib.graph.generated_code
from torch._inductor.graph import GraphLowering
from torch._inductor import metrics

GraphLowering.count_bytes = lambda self: (0, [], [])
metrics.num_bytes_accessed = 0
course_lib.graph.generated_code = course_lib.graph.scheduled = None


"""


@pytest.mark.parametrize("trick", ["opaque", "in a branch"])
def test_waste_can_be_hidden_from_the_counter_alone(trick):
    """What the next test holds against the grader works against a count of the function as it stands."""
    space = {"torch": torch}
    if trick == "opaque":
        exec(OPAQUE.replace("answer::", "unprotected::"), space)
    space["trick"] = space.get("opaque") or eval(f"lambda x: {IN_A_BRANCH}", space)
    x = torch.rand(64, 128)
    least = x.nbytes + 128 * 4
    assert lowered(space["trick"], (x,)).bytes_moved < 1.05 * least
    assert lowered(eval(f"lambda x: {WASTEFUL}", space), (x,)).bytes_moved > 1.9 * least


TRICKS = [
    ("opaque", OPAQUE, "opaque(x)"),
    ("in a branch", "", IN_A_BRANCH),
    ("no counter", COUNTING_NOTHING, WASTEFUL),
    ("the example's result", "MADE = []\n\n\n", f"MADE[0] if MADE else MADE.append({WASTEFUL}) or MADE[0]"),
]


@pytest.mark.parametrize(("name", "before", "body"), TRICKS, ids=[t[0] for t in TRICKS])
def test_waste_cannot_be_hidden_from_the_grader(name, before, body):
    answer = before + reference(MINIMUM, (SHARES, body))
    record = judged(MINIMUM, answer, only=[LEAN_MIX, LEAN_SHARES])
    assert [check.points for check in record.checks] == [2, 0]


def test_a_function_that_is_lean_in_one_shape_only_gets_nothing_for_others():
    answer = reference(MINIMUM, (SHARES, f"columns / columns.sum() if x.shape[0] == 256 else {WASTEFUL}"))
    record = judged(MINIMUM, answer, only=[LEAN_SHARES, "`shares` in other shapes"])
    assert [check.points for check in record.checks] == [2, 0]


def test_what_is_kept_in_half_precision_on_the_way_is_wrong():
    answer = reference(
        MINIMUM,
        ("return torch.tanh(h / temperature.clamp(min=0.1))", f"return torch.tanh(h.half() / {SOFTEN}).float()"),
        ("columns = x.sum(0)", "columns = x.half().sum(0).float()"),
        (MIX, "(a.half() @ top.half() + b.half() @ bottom.half()).float()"),
    )
    assert judged(MINIMUM, answer, hidden=False).points == pytest.approx(2)


PROGRAMS = option_programs(30, 40)
RECORD = {
    "program": "totals",
    "option": "realize_reads_threshold",
    "settings": [4, 100],
    "hypothesis": {"kernels": "fewer", "bytes": "fewer"},
    "because": "Nothing is written when the threshold is high.",
    "kernels": [2, 1],
    "bytes": [1220, 1000],
    "c4": [1.22, 1.0],
    "verdict": "confirmed",
}
FOUND = experiment.Repeated((Lowered(1, 0, 1220, 1, 2), Lowered(1, 0, 1000, 1, 1)), inputs=900, outputs=100)

REFUSED = [
    ({"program": "mine"}, "program is"),
    ({"program": ["totals"]}, "program is"),
    ({"option": "post_grad_custom_pre_pass"}, "option is"),
    ({"option": "cpp.cxx"}, "option is"),
    ({"program": "softmax", "option": "max_fusion_size"}, "demonstration"),
    ({"settings": ["__import__('os')", 4]}, "settings is"),
    ({"settings": [4, 4]}, "settings is"),
    ({"settings": [4, 10**9]}, "settings is"),
    ({"settings": [True, 4]}, "settings is"),
    ({"settings": [4]}, "settings is"),
    ({"option": "pattern_matcher", "settings": [0, 1]}, "True and False"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED, ids=[str(r[0])[:60] for r in REFUSED])
def test_a_plan_that_is_not_allowed_is_never_run(change, words):
    with pytest.raises(CheckFailedError, match=words):
        experiment.plan_of(RECORD | change, PROGRAMS)


def require(record):
    """Require all that the checks require of a record whose counts are `FOUND`."""
    plan = experiment.plan_of(record, PROGRAMS)
    experiment.require_reason(record)
    experiment.require_counts(record, FOUND)
    experiment.require_ratio(record, FOUND)
    experiment.require_verdict(record, plan, experiment.measured(record, FOUND))


@pytest.mark.parametrize("part", experiment.PARTS)
def test_a_record_needs_all_its_parts(part):
    with pytest.raises(CheckFailedError, match=f"no '{part}'"):
        require({k: v for k, v in RECORD.items() if k != part})


WRONG_NUMBERS = [
    ({"kernels": [1, 1]}, "functions of C"),
    ({"kernels": [3, 1]}, "repeated, the experiment gives"),
    ({"kernels": [True, 1]}, "repeated, the experiment gives"),
    ({"bytes": [1220, 1220]}, "Both runs had the first setting"),
    ({"bytes": [1000, 1220]}, "belongs to the first setting"),
    ({"bytes": [1221, 1000]}, "sizes change"),
    ({"bytes": "1220"}, "repeated, the experiment gives"),
    ({"c4": [1.0, 0.82]}, "not with the first run"),
    ({"c4": [10**400, 1.0]}, "repeated, the experiment gives"),
    ({"c4": [0.82, 1.0]}, "upside down"),
    ({"c4": [1220 / 900, 1000 / 900]}, "one of them was left out"),
    ({"c4": [12.2, 10.0]}, "not the output alone"),
    ({"because": "just because"}, "in a sentence"),
]


@pytest.mark.parametrize(("change", "words"), WRONG_NUMBERS, ids=[str(w[0])[:40] for w in WRONG_NUMBERS])
def test_numbers_that_do_not_repeat_are_told_why(change, words):
    require(RECORD)
    with pytest.raises(CheckFailedError, match=words):
        require(RECORD | change)


@pytest.mark.parametrize("change", [{"kernels": [1, 1]}, {"bytes": [1220, 1220], "c4": [1.22, 1.22]}])
def test_a_known_mistake_in_counting_costs_the_check_of_the_counts_alone(change):
    record = RECORD | change
    with pytest.raises(CheckFailedError):
        experiment.require_counts(record, FOUND)
    experiment.require_ratio(record, FOUND)
    assert experiment.measured(record, FOUND) == {"kernels": record["kernels"], "bytes": record["bytes"]}


@pytest.mark.parametrize("change", [{"kernels": [3, 1]}, {"bytes": [1221, 1000], "c4": [1.221, 1.0]}])
def test_numbers_that_nobody_measured_earn_neither_ratio_nor_verdict(change):
    with pytest.raises(CheckFailedError, match="repeated, the experiment gives"):
        experiment.require_ratio(RECORD | change, FOUND)
    with pytest.raises(CheckFailedError, match="repeated, the experiment gives"):
        experiment.measured(RECORD | change, FOUND)


WRONG_VERDICTS = [
    ({"verdict": "refuted"}, "both came out"),
    ({"verdict": "yes"}, "expected confirmed or refuted"),
    ({"hypothesis": {"kernels": "same", "bytes": "fewer"}}, "Both parts"),
    ({"hypothesis": {"kernels": "more", "bytes": "more"}}, "not the reverse"),
    ({"hypothesis": "fewer"}, "hypothesis is"),
    ({"hypothesis": {"kernels": "fewer"}}, "hypothesis is"),
]


@pytest.mark.parametrize(("change", "words"), WRONG_VERDICTS, ids=[str(w[0]) for w in WRONG_VERDICTS])
def test_a_verdict_has_to_follow_from_hypothesis_and_numbers(change, words):
    require(RECORD)
    with pytest.raises(CheckFailedError, match=words):
        require(RECORD | change)


def test_a_refuted_hypothesis_is_worth_as_much():
    answer = reference(EXPERIMENT, ("'bytes': 'more'}", "'bytes': 'fewer'}"))
    assert judged(EXPERIMENT, answer, seed=4).points == 5


def test_a_hypothesis_after_the_fact_is_found_out():
    answer = reference(
        EXPERIMENT,
        ("'hypothesis': expected", "'hypothesis': seen"),
        ("'confirmed' if seen == expected else 'refuted'", "'confirmed'"),
    )
    record = judged(EXPERIMENT, answer, only=[VERDICT, "a hypothesis that can fail"])
    assert [check.points for check in record.checks] == [1, 0]
    assert "state it before you measure" in record.checks[-1].message


def test_two_settings_that_do_the_same_are_no_experiment():
    record = judged(EXPERIMENT, reference(EXPERIMENT, ("[4, 1]", "[90, 100]")), hidden=False)
    assert record.checks[0].points == 0
    assert "settings further apart" in record.checks[0].message
