"""The class of the demonstration: its files are read without being run, and its marks are compared everywhere."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from autograder.exercises import all_exercises, find, of_assignment
from autograder.exercises.registry import hidden_part
from autograder.host.records import (
    CheckRecord,
    CheckStatus,
    EarnedBy,
    ExerciseRecord,
    ExerciseStatus,
    SandboxRecord,
    SubmissionRecord,
)
from demo import ClassFileError, Member, differences, read_class, read_member
from demo.class_file import NOTEBOOKS
from demo.outcome import TOLERANCE
from tests.autograder.exercises.judged import judged
from tests.drawn import some

CLASS = Path(__file__).parents[1] / "submissions"
RIGHT_BUT_ODD = {"split_cell", "untidy", "fused"}  # mistaken in the notebook, or handed in for the speed
MISTAKE = re.compile(r"^# %% mistake (\w+) = ([\d.]+): (.+)$", re.MULTILINE)
WRITTEN = re.compile(r"^# %% (?:answer|changed|mistake) (\w+) = ", re.MULTILINE)
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
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_a_file_is_read_and_not_run(tmp_path: Path) -> None:
    member = read_member(write(tmp_path, TEXT))
    assert (member.name, member.kind) == ("someone", "honest")
    assert member.answers == {"04_read_a_graph": ("raise SystemExit", "def read_graph(rows): ...")}
    assert member.marks == {"04_read_a_graph": 4.6}
    assert member.damage == {"04_fx_capture": ("cut_off",)}


def test_answers_that_the_course_has_are_taken_from_there(tmp_path: Path) -> None:
    heads = (
        "solution 00_doctor = 2",
        "mistake 00_read_a_table = 1.8: the output is dead",
        "unanswered 04_read_a_graph",
    )
    text = "".join(f"# %% {head}\n# said to people\n" for head in heads)
    member = read_member(write(tmp_path, f'"""x"""\n{text}'))
    assert member.marks == {"00_doctor": 2, "00_read_a_table": 1.8, "04_read_a_graph": 0}
    assert set(member.answers) == {"00_doctor", "00_read_a_table"}
    (solution,) = member.answers["00_doctor"]
    assert "def " in solution
    assert not any(words in solution for words in ("SOLUTION", "NotImplementedError", "said to people"))
    assert "by_users = {" in member.answers["00_read_a_table"][0]
    assert "output" not in member.answers["00_read_a_table"][0]


def test_marks_for_measured_speed_may_differ(tmp_path: Path) -> None:
    text = '"""x"""\n# %% answer 05_bias_silu_pass = 11.2, measured 9\n# %% answer 00_doctor = 2\n'
    member = read_member(write(tmp_path, text))
    assert (member.marks, member.measured) == ({"05_bias_silu_pass": 11.2, "00_doctor": 2}, {"05_bias_silu_pass": 9})


def test_a_changed_solution_is_the_notebooks_with_other_lines(tmp_path: Path) -> None:
    right = read_member(write(tmp_path / "right", "# %% solution 04_read_a_graph = 6\n")).answers["04_read_a_graph"][0]
    first, last = right.split("\n")[0], right.split("\n")[-1]
    text = f"# %% changed 04_read_a_graph = 5\n#- {last}\n#+     pass\n#+     return 1\n#- {first}\n#+ def f():\n"
    (changed,) = read_member(write(tmp_path / "changed", text)).answers["04_read_a_graph"]

    assert changed == "\n".join(["def f():", *right.split("\n")[1:-1], "    pass", "    return 1"])


@pytest.mark.parametrize("change", ["#- no line of it\n#+ pass\n", "#- {first}\npass\n"])
def test_a_change_that_cannot_be_made_is_refused(tmp_path: Path, change: str) -> None:
    right = read_member(write(tmp_path / "right", "# %% solution 04_read_a_graph = 6\n")).answers["04_read_a_graph"][0]
    text = "# %% changed 04_read_a_graph = 5\n" + change.format(first=right.split("\n")[0])
    with pytest.raises(ClassFileError, match=r"is to be one line of the solution"):
        read_member(write(tmp_path / "changed", text))


@pytest.mark.parametrize(
    "head",
    [
        "answer 04_read_a_graph",
        "answer 05_bias_silu_pass = 11.2, measured",
        "anwser 04_read_a_graph = 6",
        "split it",
        "do 04_fx_capture",
        "mistake 00_read_a_table = 1.8",
        "mistake 00_read_a_table = 1.8: no such control",
        "solution 00_read_a_tabel = 3",
        "solution 00_doctor = 2: right",
        "unanswered 00_doctor = 0",
    ],
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
        assert (member.marks == full) == (member.kind == "honest" or member.name in RIGHT_BUT_ODD)
        assert member.kind != "hostile" or not any(member.marks.values())


def test_every_notebook_is_handed_in_right_wrong_and_unfinished() -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in CLASS.glob("*/*.py")}
    mixed = re.findall(r"^# %% (solution|mistake|unanswered) (\w+)", texts["some_of_each"], re.MULTILINE)
    notebooks = {path.stem for path in NOTEBOOKS.glob("*/*.ipynb")}
    assert sorted(exercise for _, exercise in mixed) == [e for name in sorted(notebooks) for e in of_assignment(name)]
    of_each = {name: {how for how, exercise in mixed if exercise in of_assignment(name)} for name in notebooks}
    assert all({"mistake", "solution"} <= hows or "unanswered" in hows for hows in of_each.values()), of_each
    right = re.findall(r"^# %% solution (\w+)", texts["as_taught"] + texts["untidy"], re.MULTILINE)
    # of the last one, whose exercises take Inductor seconds each, some are among the mixed ones
    assert sorted(right) == [e for name in sorted(notebooks - {"09_inductor"}) for e in of_assignment(name)]


@pytest.mark.parametrize("path", sorted(CLASS.glob("*/*.py")), ids=lambda path: path.stem)
def test_a_mistake_states_the_marks_of_its_control(path: Path) -> None:
    for exercise, marks, name in MISTAKE.findall(path.read_text(encoding="utf-8")):
        part = hidden_part(exercise)
        assert part is not None
        (control,) = [one for one in part.controls if one.name == name]
        stated = float(marks)
        assert stated < control.marks if control.below else stated == control.marks, f"{exercise}: {name}"


def _stated() -> list[tuple[str, str]]:
    """Return member and exercise of the stated marks that neither full points nor a control with exact marks give."""
    found = []
    for path in (*CLASS.glob("mistaken/*.py"), *CLASS.glob("timed/*.py")):
        text, marks = path.read_text(encoding="utf-8"), read_member(path).marks
        exact = {
            exercise
            for exercise, _, name in MISTAKE.findall(text)
            for part in [hidden_part(exercise)]
            if part and any(one.name == name and not one.below for one in part.controls)
        }
        written = {*WRITTEN.findall(text)} - exact
        found += [(path.stem, e) for e in written if 0 < marks[e] < find(e, hidden=True).points]
    return sorted(found)


STATED = _stated()


@pytest.mark.parametrize(("member", "exercise"), some(STATED, 3, name="stated marks"))
def test_an_answer_of_the_class_gets_the_marks_that_it_states(member: str, exercise: str) -> None:
    (one,) = [each for each in read_class(CLASS) if each.name == member]
    record = judged(exercise, "\n\n\n".join(one.answers[exercise]))
    assert record.points == pytest.approx(one.marks[exercise], abs=TOLERANCE)


@pytest.mark.parametrize("notebook", sorted(path.stem for path in NOTEBOOKS.glob("*/*.ipynb")))
def test_no_visible_check_has_the_name_of_a_hidden_one_in_it(notebook: str) -> None:
    """The demonstration looks in pages of feedback for names of hidden checks that students cannot know."""
    released = (NOTEBOOKS / notebook / f"{notebook}.ipynb").read_text(encoding="utf-8")
    checks = [check for exercise in of_assignment(notebook) for check in find(exercise, hidden=True).checks]
    visible = {check.name for check in checks if not check.hidden}
    known = visible | {check.category for check in checks}
    hidden = {check.name for check in checks if check.hidden and check.name not in released} - known
    assert [(one, other) for one in hidden for other in visible if one in other] == []


def test_the_honest_ones_were_written_independently() -> None:
    honest = [m for m in read_class(CLASS) if m.kind == "honest" and m.name != "as_taught"]
    assert len(honest) >= 2
    for one, other in combinations(honest, 2):
        both = one.answers.keys() & other.answers.keys()
        assert len(both) >= 3
        for exercise in both:
            lines = [{line.strip() for part in m.answers[exercise] for line in part.splitlines()} for m in (one, other)]
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


@pytest.mark.parametrize(("by", "count"), [("measured", 0), ("counted", 2), (None, 2)])
def test_marks_for_measured_speed_count_where_it_decided(tmp_path: Path, by: str | None, count: int) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("assignment,student_id,score\n04_fx_capture,someone,4\n")
    member = Member("someone", "timed", "", {}, {"04_read_a_graph": 4.6}, {}, {"04_read_a_graph": 4.0})
    check = CheckRecord(
        "launches", "counted cost", False, CheckStatus.FAILED, 4.0, 6.0, "slow", EarnedBy(by) if by else None
    )
    exercise = ExerciseRecord("04_read_a_graph", "graph", 4.0, 6.0, ExerciseStatus.GRADED, checks=(check,))
    graded = SubmissionRecord("04_fx_capture", "someone", "0", SandboxRecord(1), (exercise,))
    assert len(differences([member], [graded], path)) == count


def test_a_student_who_is_missing_from_the_gradebook_is_named(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("assignment,student_id,score\n")
    member = Member("someone", "honest", "", {}, {"04_read_a_graph": 4.6}, {})
    assert any("gradebook holds None" in d for d in differences([member], [record(4.6)], path))
    assert any("was not graded" in d for d in differences([member], [], path))
