"""Notebook 02: questions are what they should be, likely wrong answers are named, and luck is not enough."""

import statistics

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from autograder.exercises.hidden.measuring import annotate as known_ranges
from autograder.exercises.hidden.measuring import read_a_trace as known_traces
from autograder.exercises.measuring import annotate as ranges
from autograder.exercises.measuring import count_bytes_and_flops as counting
from autograder.exercises.measuring import find_the_flaw as flaws
from autograder.exercises.measuring import measure as measuring
from autograder.exercises.measuring import read_a_trace as traces
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from course_lib.models import program_from_steps
from course_lib.timing import Flaw, NoisyMachine
from tests.autograder.exercises.judged import judged, messages, reference, said
from tests.drawn import third

WINDOWS = (("gelu",), ("matmul", "softmax"))


@pytest.mark.parametrize("flaw", list(Flaw))
def test_a_script_with_one_flaw_shows_that_one_and_measures_wrongly_on_any_device(flaw):
    for seed in range(20):
        for window in flaws.device(Draw(seed, "device")).run(flaws.script(WINDOWS, frozenset({flaw}))):
            if flaw is Flaw.COMPILED or flaw is Flaw.CACHED:
                assert window.flaws <= {flaw}
            else:
                assert window.flaws == {flaw}
                assert flaws._is_off(window)


def test_a_sound_script_is_sound_on_any_device():
    for seed in range(50):
        windows = flaws.device(Draw(seed, "device")).run(flaws.script(WINDOWS))
        assert [window.programs for window in windows] == list(WINDOWS)
        assert not any(window.flaws or flaws._is_off(window) for window in windows)


def test_each_flaw_that_stays_is_named():
    record = judged("02_find_the_flaw", "def mend(script):\n    return script\n", seed=5)
    told = " ".join(messages(record).values())
    for flaw in Flaw:
        assert flaws.SAYS[flaw] in told


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("'sync'", "return a list of steps"),
        ("['launch conv']", "it knows draw"),
        ("script * 40", "are enough"),
        ("[s for s in script if s != 'clock']", "it is meant to measure"),
    ],
)
def test_what_is_no_script_is_answered_in_a_sentence(returned, words):
    record = judged("02_find_the_flaw", f"def mend(script):\n    return {returned}\n", hidden=False, seed=5)
    assert record.points < record.max_points
    assert words in " ".join(messages(record).values())


def test_a_ratio_that_is_upside_down_is_called_so_once():
    change = ("medians[programs[0]] / medians[programs[1]]", "medians[programs[1]] / medians[programs[0]]")
    told = messages(judged("02_measure", reference("02_measure", change), seed=5)).values()
    assert [message.lower().count("upside down") for message in told] == [1]
    assert all(message.endswith("means that the second is faster: divide the first by the second.") for message in told)


PAIRS = "[name for _ in range(request['samples']) for name in random.sample(programs, 2)]"
# exercise, words of a message, a change of the reference
NAMED = [
    (
        "02_measure",
        "That is the mean",
        ("medians = {name: statistics.median(mine)", "medians = {name: statistics.fmean(mine)"),
    ),
    (
        "02_measure",
        "standard deviation",
        ("statistics.median([abs(t - medians[n]) for t in mine])", "statistics.pstdev(mine)"),
    ),
    (
        "02_measure",
        "upside down",
        ("medians[programs[0]] / medians[programs[1]]", "medians[programs[1]] / medians[programs[0]]"),
    ),
    ("02_measure", "run the two in turns", (PAIRS, f"sorted({PAIRS})")),
    ("02_measure", "each is to be run", ("range(request['samples'])", "range(request['samples'] - 1)")),
    ("02_measure", "environment().to_json()", ("environment().to_json()", "{}")),
    (
        "02_count_bytes_and_flops",
        "A view moves nothing",
        ("any((t.untyped_storage().data_ptr() not in storages for t in writes))", "True"),
    ),
    ("02_count_bytes_and_flops", "an addition are two operations", ("self.flops += 2 *", "self.flops +=")),
    ("02_count_bytes_and_flops", "multiply by the bytes of one", ("numel() * tensor.element_size()", "numel()")),
    ("02_count_bytes_and_flops", "what is read moves, too", ("reads + writes", "writes")),
    ("02_count_bytes_and_flops", "come in lists", ("tree_leaves(args)", "args")),
    (
        "02_count_bytes_and_flops",
        "is read once",
        (
            "list({id(t): t for t in tree_leaves(args) if isinstance(t, torch.Tensor)}.values())",
            "[t for t in tree_leaves(args) if isinstance(t, torch.Tensor)]",
        ),
    ),
    ("02_read_a_trace", "an operator on the host", ("e['cat'] == 'kernel'", "e['cat'] == 'cpu_op'")),
    ("02_read_a_trace", "add up durations", ("+ end - start", "+ 1")),
    ("02_read_a_trace", "start to start", ("max(reached, end)", "start")),
    ("02_read_a_trace", "Those are all ranges", (" if 2 * covered_us(first, last) < last - first", "")),
    ("02_read_a_trace", "the other way round", ("< last - first", ">= last - first")),
    ("02_annotate", "stays open", ("finally:", "except KeyError:\n            pass\n        else:")),
    ("02_annotate", "must not change what a program does", ("if not part['catches']:\n                raise", "pass")),
    ("02_annotate", "Line 1 of the log", ("log.append(f'begin {name}')", "log.append")),
    ("02_annotate", "nothing after it", ("raise RuntimeError(item)", "pass")),
]
TRIED = third(NAMED, name="mistakes in measuring")  # the others in other runs


@pytest.mark.parametrize(("exercise_id", "words", "change"), TRIED, ids=[f"{n[0]}: {n[1]}" for n in TRIED])
def test_a_likely_mistake_is_named(exercise_id, words, change):
    assert words in said(exercise_id, change, hidden=False, seed=5)


def test_falling_into_step_with_the_machine_is_named():
    assert "fall into step" in said("02_measure", (PAIRS, "programs * request['samples']"), seed=5)


@pytest.mark.parametrize(
    ("noise", "tolerance"),
    [
        ({}, 0.03),
        ({"drift": 0.7}, 0.08),
        ({"drift": 0.5, "bursts": 0.03}, 0.12),
        ({"drift": -0.35, "bursts": 0.03}, 0.12),
        ({"rhythm": 0.5}, 0.06),
    ],
    ids=str,
)
@pytest.mark.parametrize("shuffled", ["pairs", "the whole list"])
def test_a_right_order_practically_never_fails_by_bad_luck(noise, tolerance, shuffled):
    """30 machines, and a part of the tolerance is left over."""
    for seed in range(30):
        draw = Draw(seed, "pairs")
        order = [name for _ in range(measuring.SAMPLES) for name in draw.sample(["a", "b"], 2)]
        if shuffled == "the whole list":
            order = draw.sample(order, len(order))
        times = NoisyMachine({"a": 150.0, "b": 100.0}, seed=seed, phase=seed % 4, **noise).run(order)
        middle = {n: statistics.median(t for o, t in zip(order, times, strict=True) if o == n) for n in "ab"}
        assert abs(middle["a"] / middle["b"] / 1.5 - 1) < 0.85 * tolerance, seed


@pytest.mark.parametrize("family", [counting.views, counting.products, counting.five_operators, counting.chains])
def test_the_formulas_agree_with_torch_where_torch_counts(family):
    for question in family(Draw(3, "questions")):
        program, inputs = program_from_steps(question.data)
        with FlopCounterMode(display=False) as counter:
            result = program(*inputs)
        assert counter.get_total_flops() == question.flops, question.name
        assert isinstance(result, torch.Tensor)


def test_mistakes_in_hidden_cases_of_counting_are_named():
    for right, wrong, words in (
        ("operator._schema.is_mutable or ", "", "in place is no view"),
        (" if stride]", "]", "is stored once"),
        ("tensor.element_size()", "4", "taken for 4 bytes"),
    ):
        assert words in said("02_count_bytes_and_flops", (right, wrong), seed=5)


@pytest.mark.parametrize("package", ["graph", "profiling", "fusion", "machine"])
def test_what_counts_in_the_library_cannot_be_imported_by_an_answer(package):
    answer = f"import course_lib.{package}\n\ndef count(question):\n    return {{}}\n"
    record = judged("02_count_bytes_and_flops", answer, hidden=False, seed=5)
    assert record.points == 0
    assert f"course_lib.{package}" in record.message


def test_a_trace_has_ranges_of_both_kinds_and_its_answers_vary():
    drawn = [traces.trace(Draw(seed, "trace"), 4) for seed in range(20)]
    bound = [known_traces.truth(rows, "launch_bound") for rows in drawn]
    assert {len(names) for names in bound} == {2}
    assert len({known_traces.truth(rows, "top_kernel") for rows in drawn}) > 2
    assert len({known_traces.truth(rows, "longest_gap_us") for rows in drawn}) > 10


def test_no_two_kernels_share_the_most_time():
    """Else a right answer could name the other one."""
    for seed in range(1500):
        rows = traces.trace(Draw(seed, "trace"), 3)
        totals = sorted(known_traces._totals(known_traces.kernels_of(rows)).values())
        assert totals[-1] > totals[-2], seed


def test_with_two_streams_adding_up_durations_is_not_enough():
    for seed in range(10):
        rows = traces.trace(Draw(seed, "trace"), 4, streams=2)
        found = [e for e in rows["traceEvents"] if e["cat"] == "gpu_user_annotation"]
        added = {
            e["name"]
            for e in found
            if sum(k["dur"] for k in known_traces.kernels_of(rows) if e["ts"] <= k["ts"] < e["ts"] + e["dur"])
            < e["dur"] / 2
        }
        assert sorted(added) != known_traces.truth(rows, "launch_bound")


def test_a_program_that_fails_does_so_once_and_what_catches_lies_around_it():
    for seed in range(20):
        part = ranges.program(Draw(seed, "program"), 3, failing=True, catching=True)
        assert str(part).count("!") == 1
        assert sum(p["catches"] for p in ranges._path_to_failure(part)) == 1
        open_, caught = (known_ranges.expected_log(part, close=close) for close in (False, True))
        assert len(caught) >= len(open_)
        assert sum(line.startswith("begin ") for line in caught) == sum(line.startswith("end ") for line in caught)


@pytest.mark.parametrize(
    ("windows", "says"),
    [
        ([["gelu"], ["matmul"], ["softmax"]], "A window was split"),
        ([["gelu", "matmul", "softmax"]], "Windows were joined"),
        ([["matmul", "softmax"], ["gelu"]], "The windows stand in another order"),
        ([["gelu"], ["softmax", "matmul"]], "The programs are launched in another order"),
        ([["gelu"], ["matmul"]], "A launch is missing between the clocks, that of softmax"),
        ([["gelu", "gelu"], ["matmul", "softmax"]], "There are more launches between the clocks"),
    ],
)
def test_what_became_of_the_windows_is_said(windows, says):
    with pytest.raises(CheckFailedError, match=says):
        flaws.require_sound(
            flaws.script(windows), flaws.script(WINDOWS), WINDOWS, flaws.device(Draw(5, "device")), {Flaw.COMPILED}
        )
