"""The board: best ratios under pseudonyms that nobody else can compute, and only if the instructor wants it."""

import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.classroom.trials.board import Board
from autograder.classroom.trials.server import TrialServer
from autograder.host.records import ExerciseRecord, ExerciseStatus, SpeedRecord, SpeedVerdict
from autograder.host.spool import Places, TrialReply
from tests.autograder.classroom.trials.students import put

SPEED = SpeedRecord(SpeedVerdict.SHOWN, "", 1.5, 1.4, 1.6, 9, 1, 10.0, 15.0, 1.3, 1.65, 2.0, "cpu")
RECORD = ExerciseRecord("05_bias_silu_pass", "graph", 2.0, 2.0, ExerciseStatus.GRADED, speed=SPEED)


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path / "board.jsonl", tmp_path / "board.html", tmp_path / "secret_seed")


def faster(ratio: float) -> ExerciseRecord:
    return replace(RECORD, speed=replace(SPEED, ratio=ratio))


def test_a_pseudonym_is_stable_in_a_course_and_another_in_the_next(board: Board, tmp_path: Path) -> None:
    name = board.pseudonym("alice")
    other = Board(board.kept, board.page, tmp_path / "another_seed")

    assert name == Board(board.kept, board.page, board.seed_file).pseudonym("alice")
    assert name not in {board.pseudonym("alicf"), other.pseudonym("alice")}
    assert len({board.pseudonym(f"student {number}") for number in range(1_000)}) == 1_000


def test_the_page_shows_the_best_of_each_and_no_name(board: Board) -> None:
    told = board.enter("alice", faster(1.5))
    for account, ratio in (("alice", 1.2), ("bob", 1.75), ("bob", 1.7)):
        board.enter(account, faster(ratio))
    page = board.page.read_text()

    assert told == f"On the board you are {board.pseudonym('alice')}."
    assert [(one.pseudonym, one.ratio) for one in board.best()["05_bias_silu_pass"]] == [
        (board.pseudonym("bob"), 1.75),
        (board.pseudonym("alice"), 1.5),
    ]
    assert page.index("1.75") < page.index("1.50")
    assert "1.70" not in page
    kept = board.kept.read_text()
    assert not any(name in text for name in ("alice", "bob") for text in (page, kept))
    assert stat.S_IMODE(board.kept.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "record",
    [
        replace(RECORD, speed=None),
        replace(RECORD, points=1.9),
        replace(RECORD, speed=replace(SPEED, flags=("faster than memory allows",))),
        replace(RECORD, speed=replace(SPEED, verdict=SpeedVerdict.ENVIRONMENT)),
        replace(RECORD, speed=replace(SPEED, verdict=SpeedVerdict.INCONCLUSIVE)),
    ],
)
def test_what_is_wrong_or_for_a_person_to_review_is_not_on_it(board: Board, record: ExerciseRecord) -> None:
    assert board.enter("alice", record) == ""
    assert not board.kept.exists()


def test_a_line_that_was_not_finished_is_left_out(board: Board) -> None:
    board.enter("alice", faster(1.5))
    with board.kept.open("a") as file:
        file.write('\n{"exercise": "05_bias_si')
    board.enter("bob", faster(1.6))

    assert [one.ratio for one in board.best()["05_bias_silu_pass"]] == [1.6, 1.5]


def test_a_board_that_cannot_be_written_costs_no_reply(
    places: Places, start: Callable[..., TrialServer], reply_to: Callable[[str], TrialReply], tmp_path: Path
) -> None:
    board = Board(tmp_path / "nowhere" / "board.jsonl", tmp_path / "board.html", tmp_path / "secret_seed")
    name, at_work = put(places), start(board=board)
    at_work.judge = lambda *_: RECORD
    at_work.turn()

    assert reply_to(name).record == RECORD
    assert vars(at_work)["said"][0].startswith("the board could not be written")
