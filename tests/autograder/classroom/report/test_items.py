"""Item analysis says which checks tell students apart, what many misunderstand, and who handed in the same file."""

import csv
import io
import json
from dataclasses import replace

import pytest

from autograder.classroom.report import checks_csv, class_html, class_json, class_text, summarise, this_environment
from autograder.classroom.report.items import discriminations, misconceptions
from autograder.host.records import (
    BonusRecord,
    CheckRecord,
    CheckStatus,
    EarnedBy,
    ExerciseRecord,
    ExerciseStatus,
    SpeedRecord,
    SpeedVerdict,
    SubmissionRecord,
)
from autograder.host.report.exercise_html import exercise_html
from autograder.host.report.exercise_text import exercise_text
from tests.autograder.classroom.report.sample_class import HOSTILE, sample_class, submission


def exercise(**points: float) -> ExerciseRecord:
    checks = tuple(
        CheckRecord(name, "c", False, CheckStatus.PASSED if got else CheckStatus.FAILED, got, 1.0, "" if got else "no")
        for name, got in points.items()
    )
    return ExerciseRecord("x", "value", sum(points.values()), float(len(points)), ExerciseStatus.GRADED, "", checks)


def class_of(count: int) -> list:  # type: ignore[type-arg]
    # the upper half knows `a` and `b`, the lower half guesses `upside_down`, everybody passes `easy`
    return [
        submission(
            f"s{i}",
            exercise(a=float(i >= count / 2), b=float(i >= count / 2), upside_down=float(i < count / 2), easy=1.0),
        )
        for i in range(count)
    ]


def test_a_check_that_favours_the_weak_is_below_zero_and_one_that_all_pass_says_nothing() -> None:
    found = discriminations(class_of(12))
    assert found["x", "upside_down"] == pytest.approx(-1.0)
    # by hand: the rest of `a` is (b + upside_down + easy) / 3, two thirds for everybody
    assert not {("x", "a"), ("x", "b"), ("x", "easy")} & set(found)


def test_a_check_is_compared_with_the_points_of_all_other_checks() -> None:
    records = [submission(f"s{i}", exercise(a=float(i % 2), b=float(i % 2), c=float(i < 6))) for i in range(12)]
    found = discriminations(records)
    # a and b agree, c is independent of both: by hand the rest of `a` has b with weight 1/2 and c with weight 1/2
    assert found["x", "a"] == pytest.approx(0.5**0.5)
    assert found["x", "c"] == pytest.approx(0.0, abs=1e-9)


def test_of_a_few_students_nothing_is_said() -> None:
    assert discriminations(class_of(9)) == {}


def test_messages_that_differ_in_numbers_are_one_misconception() -> None:
    def failed(number: float) -> ExerciseRecord:
        check = CheckRecord("scale", "c", False, CheckStatus.FAILED, 0.0, 1.0, f"{number} times too small: use sqrt.")
        return ExerciseRecord("x", "value", 0.0, 1.0, ExerciseStatus.GRADED, "", (check,))

    records = [submission("a", failed(2.5)), submission("b", failed(3)), submission("c", exercise(scale=0.0))]
    (common,) = misconceptions(records)
    assert common.students == ("a", "b")
    assert common.sentence == "2.5 times too small: use sqrt."


def test_an_unanswered_exercise_is_no_misconception() -> None:
    empty = replace(exercise(a=0.0), status=ExerciseStatus.NOT_FOUND)
    assert misconceptions([submission("a", empty), submission("b", empty)]) == ()


def test_equal_files_are_shown_to_a_person_and_empty_ones_are_not() -> None:
    one, two = submission("a", exercise(a=1.0)), submission("b", exercise(a=1.0))
    other = replace(submission("c", exercise(a=1.0)), submission_sha256="1" * 64)
    empty = [
        replace(submission(name, replace(exercise(a=0.0), status=ExerciseStatus.NOT_FOUND)), submission_sha256="2" * 64)
        for name in "de"
    ]
    entries = [entry for entry in summarise([one, two, other, *empty]).attention if "same file" in entry.sentence]
    assert [entry.student for entry in entries] == ["a, b"]


def test_page_and_text_show_the_analysis() -> None:
    summary = summarise(class_of(12))
    for text in (f(summary, title="t", environment=this_environment()) for f in (class_html, class_text)):
        assert "-1.00" in text
        assert "What several students got wrong" in text


def test_a_check_for_speed_has_its_ratio_in_the_csv_and_other_checks_have_none() -> None:
    speed = SpeedRecord(SpeedVerdict.SHOWN, "", 1.5, 1.4, 1.6, 9, 1, 10.0, 15.0, 1.3, 1.65, 2.0, "cpu")
    of_two = exercise(right=1.0, fast=1.0)
    checks = (of_two.checks[0], replace(of_two.checks[1], by=EarnedBy.COUNTED))
    timed, untimed = replace(of_two, checks=checks, speed=speed), replace(of_two, checks=checks)
    rows = [*csv.DictReader(io.StringIO(checks_csv(summarise([submission("a", timed), submission("b", untimed)]))))]

    found = {(row["student"], row["check"]): (row["ratio"], row["ratio_low"], row["ratio_high"]) for row in rows}
    assert found.pop(("a", "fast")) == ("1.5", "1.4", "1.6")
    assert set(found.values()) == {("", "", "")}


def test_a_bonus_is_shown_beside_the_points_and_is_part_of_none() -> None:
    bonus = BonusRecord(6.0, 10.0, True, "1.13 times as fast earns 6, 1.28 earns 10.", 2.5)
    plain = exercise(right=1.0, fast=0.0)
    records = [
        submission("a", replace(plain, bonus=bonus)),
        submission("b", replace(plain, bonus=BonusRecord(0.0, 10.0, False, "It is measured elsewhere."))),
        submission("c", plain),
    ]
    summary = summarise(records)

    rows = [*csv.DictReader(io.StringIO(checks_csv(summary)))]
    assert {row["student"]: row["bonus"] for row in rows} == {"a": "6.0", "b": "", "c": ""}
    assert [(s.points, s.max_points) for s in summary.students] == 3 * [(1.0, 2.0)]
    assert (
        class_html(summary, title="t", environment=this_environment()).count(">bonus 6</div>") == 2
    )  # by name, by points
    again = SubmissionRecord.from_json(records[0].to_json())
    assert (again, again.points, again.max_points) == (records[0], 1.0, 2.0)
    for shown in (exercise_html(records[0].exercises[0]), exercise_text(records[0].exercises[0])):
        assert "6 of 10 for the time of a training step, beside the points" in shown
        assert "The first step was finished after 2.5 s." in shown
    assert "bonus: for the time of a training step, not assessed here" in exercise_text(records[1].exercises[0])
    assert "bonus" not in exercise_text(plain)


@pytest.mark.parametrize(("points", "assessed"), [(11.0, True), (6.0, False), (-1.0, True)])
def test_a_bonus_above_its_maximum_or_without_assessment_is_refused(points: float, assessed: bool) -> None:
    with pytest.raises(ValueError, match="bonus"):
        BonusRecord(points, 10.0, assessed, "")


def test_the_data_hold_every_check_and_no_formula() -> None:
    records = [*sample_class(), submission("=cmd", exercise(a=1.0))]
    summary = summarise(records)
    rows = list(csv.DictReader(io.StringIO(checks_csv(summary))))
    assert len(rows) == sum(
        len(e.checks) for r in {(r.student, r.assignment): r for r in records}.values() for e in r.exercises
    )
    assert not [row for row in rows if row["student"].startswith("=")]
    data = json.loads(class_json(summary, title=HOSTILE, environment=this_environment()))
    assert len(data["students"]) == len(summary.students)
    assert data["checks"][0]["discrimination"] is None or -1 <= data["checks"][0]["discrimination"] <= 1
