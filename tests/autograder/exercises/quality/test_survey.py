"""Quality of checks: what counts as a failure, what the mutants are, and a sample of every exercise's own."""

import ast
import json
import os
from dataclasses import replace

import pytest

from autograder.classroom import cli
from autograder.exercises import all_exercises
from autograder.exercises.quality import survey as surveys
from autograder.exercises.quality.mutants import mutants
from autograder.exercises.quality.survey import (
    ControlResult,
    MutantResult,
    Quality,
    failing,
    quality_json,
    quality_text,
    survey,
)
from autograder.exercises.registry import find, hidden_part
from autograder.host.exercise import Control
from autograder.host.sandbox import open_sandbox
from tests.autograder.exercises.judged import reference
from tests.drawn import some

SAMPLE = 2  # of controls and of mutants; all of them in `make bench`
KILLED, MISSED = MutantResult("line 1: a -> b", "values", True), MutantResult("line 2: c -> d", "", False)
GOOD = Quality(
    "07_sample", 4.0, 4.0, 1.5, (ControlResult("zeros", "0", 0.0, True),), (KILLED,) * 16 + (MISSED,) * 4, 20, 0
)


@pytest.mark.parametrize("exercise_id", some(all_exercises(), 3, name="exercises"))
def test_a_sample_of_controls_gets_its_marks_and_of_mutants_is_tried(exercise_id):
    found = survey(exercise_id, sandbox=open_sandbox(), seed=1, sample=SAMPLE, slots=len(os.sched_getaffinity(0)))

    assert failing([found]) == []
    assert found.reference_points == found.max_points > 0
    # two edits may both change nothing that anybody could notice, so how many are noticed is judged in the benchmark
    assert {mutant.killed_by for mutant in found.mutants} <= {
        "",
        *(c.name for c in find(exercise_id, hidden=True).checks),
    }
    assert len(found.controls) == len(found.mutants) == SAMPLE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reference_points": 3.5}, "The reference gets 3.5 of 4 points."),
        ({"controls": (ControlResult("zeros", "0", 1.0, False),)}, "Control 'zeros' gets 1 points; it must get 0."),
        (
            {"controls": (ControlResult("zeros", "0", 0.0, True, unforeseen="It surprises."),)},
            "Control 'zeros': It surprises.",
        ),
        ({"mutants": (KILLED,) * 15 + (MISSED,) * 5}, "The checks notice 75% of the mutants; 80% are asked for."),
    ],
)
def test_what_must_not_be_is_said(change, words):
    assert failing([GOOD]) == []
    assert failing([replace(GOOD, **change)]) == [f"07_sample: {words}"]
    assert words in quality_text([replace(GOOD, **change)])


def test_a_score_of_few_mutants_is_shown_and_not_judged():
    assert failing([replace(GOOD, mutants=(MISSED,) * 5)]) == []


def test_the_table_names_what_no_check_noticed_and_json_holds_all():
    assert "07_sample: no check notices line 2: c -> d" in quality_text([GOOD])
    assert json.loads(quality_json([GOOD]))[0]["score"] == 0.8


def test_a_control_is_exact_or_below():
    assert Control("zeros", "", 0).passes(0)
    assert not Control("zeros", "", 0).passes(0.5)
    assert Control("spoilt", "", 4, below=True).passes(3.9)
    assert not Control("spoilt", "", 4, below=True).passes(4)


SOLUTION = """
def solve(values, *, strict=True):
    '''Sum.'''
    total = 0
    for value in values:
        if value < 0 and strict:
            continue
        total += value
    return round(total, ndigits=2)
"""


@pytest.mark.parametrize(
    "edit",
    [
        "line 4: 0 -> 1",
        "line 4: total = 0 -> pass",
        "line 6: value < 0 -> value <= 0",
        "line 6: value < 0 and strict -> value < 0 or strict",
        "line 6: if value < 0 and strict: -> if False:",
        "line 7: continue -> pass",
        "line 8: total += value -> total -= value",
        "line 9: round(total, ndigits=2) -> round(total)",
        "line 9: return round(total, ndigits=2) -> return None",
        "line 2: True -> False",
    ],
)
def test_each_kind_of_small_edit_is_among_the_mutants(edit):
    assert edit in [str(mutant) for mutant in mutants(SOLUTION)]


def test_mutants_are_programs_all_different_and_none_the_solution():
    texts = [mutant.text for mutant in mutants(SOLUTION)]

    assert len(set(texts)) == len(texts) > 10
    assert ast.unparse(ast.parse(SOLUTION)) not in [ast.unparse(ast.parse(text)) for text in texts]
    assert not any("Sum_" in text for text in texts)


@pytest.mark.parametrize("exercise_id", [e for e in all_exercises() if hidden_part(e).equivalent])
def test_every_mutant_that_is_called_equivalent_is_in_one_statement_and_has_a_reason(exercise_id):
    every = mutants(reference(exercise_id))

    for change, reason in hidden_part(exercise_id).equivalent.items():
        assert len({mutant.statement for mutant in every if mutant.is_listed([change])}) == 1, change
        assert reason


def test_a_mutant_is_listed_by_its_code_alone_or_with_its_statement():
    solution = "def f(x):\n    y = x + 1\n    return [g(1, lambda z: z * 1)]\n"
    listed = {str(m) for m in mutants(solution) if m.is_listed(["x + 1 -> x - 1", "lambda z: z * 1: 1 -> 2"])}

    assert listed == {"line 2: x + 1 -> x - 1", "line 3: 1 -> 2"}
    assert [m.text for m in mutants(solution) if m.is_listed(["lambda z: z * 1: 1 -> 2"])] == [
        "def f(x):\n    y = x + 1\n    return [g(1, lambda z: z * 2)]\n"
    ]


def test_the_same_mutants_are_listed_whatever_the_format_of_a_solution():
    other = (
        SOLUTION.replace("\n", "\n\n").replace("strict=True", "strict = True,").replace("value < 0", "(value\n < 0)")
    )
    changes = ["total = 0: 0 -> 1", "value < 0 -> value <= 0", "continue -> pass"]

    assert {m.text for m in mutants(other)} == {m.text for m in mutants(SOLUTION)}
    for solution in (other, SOLUTION):
        assert len([m for m in mutants(solution) if m.is_listed(changes)]) == len(changes)


def test_checks_after_the_first_failure_do_not_run():
    from autograder.exercises import find

    first, ran = surveys._FirstFailure(), []
    checks = [replace(c, run=lambda answer, draw: ran.append(1) or 1 / answer) for c in find("04_read_a_graph").checks]
    for check in map(first.watching, checks):
        with pytest.raises((ZeroDivisionError, surveys.CheckFailedError)):
            check.run(0, None)

    assert ran == [1]
    assert first.failed is checks[0]


@pytest.mark.parametrize(("reference_points", "status"), [(4.0, 0), (3.5, 1)])
def test_the_command_says_by_its_exit_status_whether_the_checks_are_good_enough(
    monkeypatch, capsys, reference_points, status
):
    monkeypatch.setattr(cli, "open_sandbox", lambda: None)
    monkeypatch.setattr(cli, "survey", lambda *_, **__: replace(GOOD, reference_points=reference_points))

    assert cli.main(["quality", "04_read_a_graph"]) == status
    assert "07_sample" in capsys.readouterr().out
    assert cli.main(["quality", "--json", "04_read_a_graph"]) == status
    assert json.loads(capsys.readouterr().out)[0]["reference_points"] == reference_points


@pytest.mark.parametrize(
    ("error", "status"), [(LookupError("no hidden part"), 2), (surveys.NotSurveyedError("no sandbox"), 4)]
)
def test_what_cannot_be_surveyed_is_said_in_one_sentence(monkeypatch, capsys, error, status):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(cli, "open_sandbox", lambda: None)
    monkeypatch.setattr(cli, "survey", refuse)

    assert cli.main(["quality", "04_read_a_graph"]) == status
    assert capsys.readouterr().err == f"autograder: {error}\n"
