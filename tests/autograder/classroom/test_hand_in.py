"""What a hand-in's record says beside the points."""

from pathlib import Path

from autograder.classroom.hand_in import HandedIn
from autograder.host.records import ExerciseRecord, ExerciseStatus, SandboxRecord, SubmissionRecord
from autograder.host.sandbox import open_sandbox

ALLOCATOR = Path(__file__).parents[3] / "course_lib/backends/toy/registers.py"
LOWER, FUSE = "10_lower_regions", "10_fuse_where_it_pays"


def test_copied_functions_are_in_the_record_and_the_points_stay():
    answers = {LOWER: ALLOCATOR.read_text(encoding="utf-8"), FUSE: "def divide(question):\n    return {}\n"}
    hand_in = HandedIn("10_backends", "ada", Path("10_backends.ipynb"), "0" * 64, answers)
    graded = tuple(ExerciseRecord(each, "value", 3.0, 10.0, ExerciseStatus.GRADED) for each in (LOWER, FUSE))
    record = SubmissionRecord("10_backends", "ada", "0" * 64, SandboxRecord(1), graded)

    again = hand_in.grade_again(record, sandbox=open_sandbox(), seed=1)  # none was stopped, so no code runs

    lower, fuse = again.exercises
    assert "_Scan.run" in [copy.function for copy in lower.copies]
    assert fuse.copies == ()
    assert again.points == 6
