"""A prediction is compared with what was measured, and says nothing that is not so."""

import pytest

from course_lib import predictions as module
from course_lib.predictions import Value, predict, predictions, reveal


@pytest.fixture(autouse=True)
def _no_earlier_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_guesses", {})
    monkeypatch.setattr(module, "_outcomes", {})


@pytest.mark.parametrize(
    ("guess", "truth", "is_right"),
    [
        (16, 16, True),
        (15, 16, True),  # 6 % away
        (14, 16, False),
        (0.0, 0, True),
        (1, 0, False),
        (-16, 16, False),
        ("Flash ", "flash", True),
        ("math", "flash", False),
        (True, True, True),
        (True, False, False),
        (1, True, True),
        ("16", 16, False),
    ],
)
def test_a_guess_is_right_or_not(
    guess: Value, truth: Value, is_right: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    predict("it", guess)
    reveal("it", truth, "So it is.")

    printed = capsys.readouterr().out
    assert printed.startswith("You predicted ")
    assert (", and it is" in printed) == is_right
    assert printed.endswith("So it is.\n")


def test_without_a_guess_the_answer_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    predict("it", ...)
    reveal("it", 1_048_576, "A score for each pair.")

    assert capsys.readouterr().out == "It is 1,048,576. A score for each pair.\n"


def test_a_word_that_is_not_offered_is_named_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"'fast'. Choose one of 'flash', 'math'\."):
        predict("kernel", "fast", choices=("flash", "math"))


def test_a_name_that_was_not_predicted_is_named() -> None:
    with pytest.raises(KeyError, match=r"Nothing was predicted as 'peek'. Run the line `predict\('peek', ...\)` first"):
        reveal("peek", 1, "")


def test_the_table_counts_what_was_predicted() -> None:
    for name, guess in (("a", 1), ("b", 2), ("c", ...)):
        predict(name, guess)
        reveal(name, 1, "")

    table = predictions()
    assert table.caption == "1 of 2 were right"
    assert table.rows == (("a", "1", "1", "yes"), ("b", "2", "1", "no"), ("c", "", "1", ""))


def test_a_new_guess_takes_the_place_of_the_old_one(capsys: pytest.CaptureFixture[str]) -> None:
    predict("it", 3)
    predict("it", 4)
    reveal("it", 4, "")

    assert "You predicted 4, and" in capsys.readouterr().out
