"""A check asks of a question what its draw has asked; the result is then there, and cannot be changed."""

import pytest

from autograder.exercises import questions
from autograder.exercises.hidden.backends import fuse_where_it_pays


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The questions that were computed, with room for two results."""
    computed: list[int] = []

    def facts_of(number: int) -> list[int]:
        computed.append(number)
        return [number]

    monkeypatch.setattr(questions, "_LATEST", {})
    monkeypatch.setattr(questions, "KEPT_RESULTS", 2)
    monkeypatch.setattr(fuse_where_it_pays, "facts_of", facts_of)
    return computed


FACTS_OF = questions.kept("autograder.exercises.backends.fuse_where_it_pays", "facts_of")


def test_the_latest_results_are_not_computed_again_and_the_oldest_goes_first(asked: list[int]) -> None:
    assert [FACTS_OF(number) for number in (1, 2, 1, 3, 1)] == [[1], [2], [1], [3], [1]]
    assert asked == [1, 2, 3]
    FACTS_OF(2)
    assert asked == [1, 2, 3, 2]


def test_who_changes_a_result_changes_no_later_one(asked: list[int]) -> None:
    FACTS_OF(1).append("changed")
    assert FACTS_OF(1) == [1]
    with questions.recorded() as results:
        FACTS_OF(1).append("changed")
    assert list(results.values()) == [[1]]


def test_another_function_of_that_name_has_results_of_its_own(
    asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    FACTS_OF(1)
    monkeypatch.setattr(fuse_where_it_pays, "facts_of", lambda number: -number)
    assert FACTS_OF(1) == -1
