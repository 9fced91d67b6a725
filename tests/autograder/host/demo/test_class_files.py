"""The class of the demonstration: its files are read without being run, and its marks are compared everywhere."""

from pathlib import Path

import pytest

from autograder.host.demo import ClassFileError, Member, differences, read_class, read_member
from autograder.host.exercises import all_exercises, find
from autograder.host.records import ExerciseRecord, ExerciseStatus, SandboxRecord, SubmissionRecord

CLASS = Path(__file__).parents[3] / "submissions"
TEXT = '''"""What it does.

Why it gets its marks.
"""

# %% answer 04_read_a_graph = 4.6
raise SystemExit


# %% split
def read_graph(rows): ...

# %% do 04_fx_capture cut_off
'''


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "honest" / "someone.py"
    path.parent.mkdir()
    path.write_text(text)
    return path


def test_a_file_is_read_and_not_run(tmp_path: Path) -> None:
    member = read_member(write(tmp_path, TEXT))
    assert (member.name, member.kind) == ("someone", "honest")
    assert member.answers == {"04_read_a_graph": ("raise SystemExit", "def read_graph(rows): ...")}
    assert member.marks == {"04_read_a_graph": 4.6}
    assert member.damage == {"04_fx_capture": ("cut_off",)}


@pytest.mark.parametrize(
    "head", ["answer 04_read_a_graph", "anwser 04_read_a_graph = 6", "split it", "do 04_fx_capture"]
)
def test_a_line_that_is_neither_is_named(tmp_path: Path, head: str) -> None:
    with pytest.raises(ClassFileError, match="someone"):
        read_member(write(tmp_path, f'"""x"""\n# %% {head}\n'))


def test_the_class_is_complete() -> None:
    members = read_class(CLASS)
    kinds = [m.kind for m in members]
    assert len(members) >= 8
    assert kinds.count("honest") >= 2
    assert kinds.count("hostile") >= 2
    for member in members:
        assert set(member.answers) <= set(all_exercises())
        assert len(member.about.split()) > 20, f"{member.name} does not say what it does and why it gets its marks"
        full = {name: find(name, hidden=True).points for name in member.marks}
        assert (member.marks == full) == (member.kind == "honest" or member.name == "split_cell")
        assert member.kind != "hostile" or not any(member.marks.values())


def test_the_honest_ones_were_written_independently() -> None:
    honest = [m for m in read_class(CLASS) if m.kind == "honest"]
    answered = [exercise for exercise in all_exercises() if all(exercise in m.answers for m in honest)]
    assert len(answered) >= 3
    for exercise in answered:
        lines = [{line.strip() for part in m.answers[exercise] for line in part.splitlines()} for m in honest]
        assert len(lines[0] & lines[1]) < 0.3 * min(map(len, lines))


def record(points: float) -> SubmissionRecord:
    exercise = ExerciseRecord("04_read_a_graph", "value", points, 6.0, ExerciseStatus.GRADED)
    return SubmissionRecord("04_fx_capture", "someone", "0", SandboxRecord(1), (exercise,))


@pytest.mark.parametrize(
    ("points", "exported", "count"), [(4.6, "4.6", 0), (6, "4.6", 1), (4.6, "6.0", 1), (4.6004, "4.6", 0), (0, "0", 2)]
)
def test_every_mark_that_differs_is_named(tmp_path: Path, points: float, exported: str, count: int) -> None:
    path = tmp_path / "grades.csv"
    path.write_text(f"assignment,student_id,score\n04_fx_capture,someone,{exported}\n")
    member = Member("someone", "honest", "", {}, {"04_read_a_graph": 4.6}, {})
    assert len(differences([member], [record(points)], path)) == count


def test_a_student_who_is_missing_from_the_gradebook_is_named(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("assignment,student_id,score\n")
    member = Member("someone", "honest", "", {}, {"04_read_a_graph": 4.6}, {})
    assert any("gradebook holds None" in d for d in differences([member], [record(4.6)], path))
    assert any("was not graded" in d for d in differences([member], [], path))
