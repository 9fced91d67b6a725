"""What people likely get wrong in lesson 11 is named, and the programs of its passes are what the tasks say."""

import pytest

from autograder.exercises.custom_operators import place_the_pass, refuse_look_alikes, replace_block_end
from autograder.exercises.hidden.custom_operators import place_the_pass as known_places
from autograder.exercises.hidden.custom_operators import refuse_look_alikes as hidden_look_alikes
from autograder.exercises.hidden.custom_operators import replace_block_end as hidden_ends
from autograder.host.value_cap import condition
from course_lib.inductor_passes import HOOKS, fuse_loosely
from tests.autograder.exercises.judged import judged, known_answer, messages, said
from tests.drawn import some

ENDS = "11_replace_block_end"
FOLD = "question['rank'] == 2 and (not question['read_again'])"
# exercise, words of a message of a visible check, changes of the reference
NAMED = [
    ("11_correct_operator", "Compute its shape", ("at + rows.shape[0], cache", "rows.shape[0], cache")),
    ("11_correct_operator", "declares writes to nothing", ("('cache',)", "()")),
    ("11_correct_operator", "lacks a part", (" * (1 + gate * (1 - s))", "")),
    ("11_find_the_lie", "On this input `strides` breaks its promise, too", ("asked == 'strides'", "True")),
    ("11_find_the_lie", "contiguous", ("asked == 'strides'", "False")),
    ("11_pass_identity", "is the same for both", (" {limit!r}", "")),
    ("11_pass_identity", "leaves its cache aside", ("f'BoundPass 1 {sorted(operators)} {limit!r}'", "None")),
    ("11_pass_identity", "counts if something reads it", ("for user in users:", "for user in users[:0]:")),
    ("11_pass_identity", "a clamp reads itself", ("for user in users:", "for user in list(node.users):")),
    ("11_pass_identity", "has to read its clamp", ("(node, -limit, limit)", "(node, 0, limit)")),
    ("11_place_the_pass", "a view stands between", (FOLD, "not question['read_again']")),
    ("11_place_the_pass", "folds product and sum", (FOLD, "False")),
    ("11_refuse_look_alikes", "x + 2 b", ("if any((node.kwargs for node in match.nodes)):", "if False:")),
    ("11_replace_block_end", "x + 2 r", ("if any(('alpha' in node.kwargs for node in match.nodes)):", "if False:")),
    ("11_replace_block_end", "residual of shape (1, 8)", ("x.shape == residual.shape and ", "")),
    ("11_refuse_look_alikes", "d is float64", (" and column.dtype == rows.dtype", "")),
    ("11_pass_identity", "for different operators do different things", (" {sorted(operators)}", "")),
    ("11_replace_block_end", "eps is", ("bias, eps)\n\n    def suits", "bias)\n\n    def suits")),
]


@pytest.mark.parametrize("mistake", some(NAMED, 2, name="mistakes"), ids=lambda mistake: f"{mistake[0]}: {mistake[1]}")
def test_a_likely_mistake_is_named(mistake: tuple[str, str, tuple[str, str]]) -> None:
    exercise_id, words, change = mistake
    assert words in said(exercise_id, change, hidden=False)


def test_a_width_of_the_example_in_a_pattern_is_named() -> None:
    told = messages(
        judged(ENDS, known_answer(ENDS, "the width of the example"), only=["other ranks, sizes and dtypes"])
    )
    assert "write `weight.shape`" in told["other ranks, sizes and dtypes"]


def test_the_hooks_of_the_questions_are_those_of_the_library() -> None:
    assert place_the_pass.HOOKS == HOOKS


def test_without_a_check_each_look_alike_is_rewritten_but_what_the_matcher_itself_refuses() -> None:
    programs = [*hidden_look_alikes.LOOK_ALIKES, *refuse_look_alikes.NUMBERS]
    programs += [refuse_look_alikes.DOUBLED, refuse_look_alikes.BARELY_MORE]
    programs += [refuse_look_alikes.DOUBLED_FIRST, refuse_look_alikes.RETURNED]
    loose = [fuse_loosely(program.trace(), lambda match: True) - program.fused for program in programs]
    assert loose.count(0) == 1, "a write between the nodes of a match is the matcher's own affair, nothing else"
    assert len(hidden_look_alikes.LOOK_ALIKES) == 11


def test_the_sum_of_a_linear_layer_is_never_seen() -> None:
    asked = {"rank": 2, "read_again": False, "pattern": place_the_pass.MM, "hooks": list(HOOKS)}
    assert known_places.hooks(asked, place_the_pass.LINEAR[0], ".relu()") == []


def test_every_program_of_the_block_end_has_a_place_to_replace() -> None:
    programs = [replace_block_end.LITERAL, replace_block_end.DOUBLED, replace_block_end.DOUBLED_FIRST]
    programs += [*hidden_ends.STAY, *hidden_ends.SEVERAL]
    assert all(program.fused >= 1 and "rsqrt" in program.trace().code for program in programs)


LIES = [
    ("11_correct_operator", "no write declared"),
    ("11_correct_operator", "strides of x"),
    ("11_correct_operator", "form without the place"),
    ("12_block_end_operator", "form of x's strides"),
    ("12_block_end_operator", "form of one row"),
]


@pytest.mark.parametrize(("exercise_id", "control"), some(LIES, 2, name="lies of operators"))
def test_an_operator_that_is_not_what_it_declares_keeps_at_most_60_percent(exercise_id: str, control: str) -> None:
    record = judged(exercise_id, known_answer(exercise_id, control), hidden=False)
    earned = sum(check.points for check in record.checks)
    assert record.points == pytest.approx(0.6 * record.max_points)
    assert record.points < earned
    assert record.cap.startswith("Your operator is not what it declares (the check `")


def test_the_condition_on_operators_is_shown_by_a_check() -> None:
    record = judged("11_correct_operator", known_answer("11_correct_operator", "reference"), hidden=False)
    assert "every operator is what it declares. It holds in the calls of the checks below" in condition(record)


def test_a_schema_that_declares_too_much_costs_its_check_alone() -> None:
    record = judged("11_correct_operator", known_answer("11_correct_operator", "both declared as written"))
    assert (record.points, record.cap) == (11, "")
