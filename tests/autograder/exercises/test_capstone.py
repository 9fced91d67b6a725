"""What people likely get wrong in a baseline record or a work log is named, and odd values cost points only."""

import pytest

from autograder.host.records import ExerciseStatus
from tests.autograder.exercises.judged import judged, messages, said

RECORD, LOG = "17_baseline", "17_work_log"
NUMBERS = "launches, bytes and saved bytes"

# exercise, words of a message, change of the reference
NAMED = [
    (RECORD, "divide them by minimum_bytes", (" / forward.minimum_bytes", "")),
    (RECORD, "That is all graphs", ("numbers[-1] - numbers[0]", "numbers[-1]")),
    (RECORD, "Dropout does nothing in evaluation mode", (".train()", ".eval()")),
    (LOG, "the unit of kernels is 'bytes'; expected 'launches'", ("'after': 20", "'after': 20, 'unit': 'bytes'")),
    (LOG, "without its unit", ("'after': 20", "'after': '20 launches'")),
    (LOG, "The log has 0 threats; expected 2 to 20", ("'threats': threats", "'threats': []")),
    (LOG, "is the text of threats[0]['threat']", ("'threats': threats", "'threats': [threats[0]] * 2")),
]
ODD = ["10**250", "-(10**250)", "True", "'29'", "[29]", "None", "{'n': 29}", "1e300"]


@pytest.mark.parametrize("mistake", NAMED, ids=[f"{n[0]}: {n[1]}" for n in NAMED])
def test_a_likely_mistake_is_named(mistake):
    exercise_id, words, *changes = mistake
    assert words in said(exercise_id, *changes, hidden=False)


def test_a_log_that_skips_a_step_is_told_where_the_state_is():
    assert "the entries before it leave 26" in said(LOG, ("'before': 26", "'before': 29"))
    assert "shows no dead end" in said(LOG, ("'dropped'", "'kept'"), ("'after': 20", "'after': 29"))


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_number_costs_the_checks_that_read_it_and_never_the_grading(odd):
    record = (
        f"def baseline(question):\n    return {{'counters': dict.fromkeys(['C1', 'C2', 'C3', 'C4', 'C5'], {odd})}}\n"
    )
    found = judged(RECORD, record, hidden=False)
    assert found.status is ExerciseStatus.GRADED
    assert found.points <= 1  # True is no 1, and one counter of two is 1
    measurement = f"{{'counter': 'kernels', 'unit': 'launches', 'before': {odd}, 'after': {odd}}}"
    log = (
        f"def work_log(question):\n    return {{'entries': [{{'measurement': {measurement}, 'verdict': {odd}}}] * 3}}\n"
    )
    found = judged(LOG, log)
    assert (found.status, found.points) == (ExerciseStatus.GRADED, 0)


def test_a_log_of_very_many_or_very_long_parts_is_told_the_limit():
    many = judged(LOG, "def work_log(question):\n    return {'entries': [{}] * 10_000, 'threats': [{}] * 10_000}\n")
    assert many.points == 0
    assert "10000 entries; expected 3 to 40" in messages(many)["each entry has evidence, hypothesis and change"]
    long = judged(LOG, "def work_log(question):\n    return {'threats': [{'threat': 'a b c d e ' * 10**6}] * 2}\n")
    assert long.points == 0
    assert max(map(len, messages(long).values())) < 400
