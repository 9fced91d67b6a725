"""Students get questions with their answers, and checks work there without the functions that know the answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.exercises import find, questions
from autograder.exercises.hidden.capstone import baseline
from autograder.exercises.quality.in_process import own_answer, points_of
from autograder.exercises.quality.question_tables import exercises_with_tables, remembering, table_of, write_tables
from scripts import image_check, student_tree
from tests.architecture.source_tree import ROOT
from tests.autograder.exercises.judged import judged, messages, reference
from tests.drawn import some

SLOW = ("04_cost_annotator", "09_predict_kernels", "09_read_generated_code")  # many seconds for each seed
SEEDS = (3, 4)
QUICK = [each for each in exercises_with_tables() if each not in SLOW]
TRIED = [*some(QUICK, 4, name="tables"), *some(SLOW, 0, name="tables")]


@pytest.fixture
def students_place(monkeypatch, tmp_path):
    """Return a function that writes the table of an exercise, and then takes the hidden part away."""

    def install(exercise_id: str, seeds: tuple[int, ...]) -> None:
        (tmp_path / f"{exercise_id}.json").write_text(table_of(exercise_id, seeds), encoding="utf-8")
        monkeypatch.setattr(questions, "SHIPPED", tmp_path)
        monkeypatch.setattr(questions, "hidden_folder", lambda: None)

    return install


@pytest.mark.parametrize("exercise_id", TRIED)
def test_visible_checks_say_the_same_with_a_table(exercise_id, students_place):
    right, wrong = (own_answer(exercise_id, reference(exercise_id)) for _ in range(2))
    wrong._function = lambda *_: "nonsense"
    full = points_of(exercise_id, right, seed=SEEDS[1], hidden=False)

    students_place(exercise_id, SEEDS)

    assert points_of(exercise_id, right, seed=SEEDS[1], hidden=False) == full
    assert all(not points for points in points_of(exercise_id, wrong, seed=SEEDS[0], hidden=False).values())


@pytest.mark.parametrize("exercise_id", QUICK)
def test_all_that_visible_checks_ask_can_be_asked_when_a_table_is_made(exercise_id):
    right = own_answer(exercise_id, reference(exercise_id))
    earned = points_of(exercise_id, right, seed=SEEDS[0], hidden=False)

    exercise = find(exercise_id)
    assert earned == {check.name: check.points for check in exercise.checks if check.name in earned}
    # The others look at what an answer captures, which takes a worker.
    assert len(earned) == len(exercise.checks) or exercise_id in ("07_tame_recompiles", "13_score_mods")


def test_captured_functions_are_judged_and_their_mistakes_named_with_a_table(students_place):
    students_place("13_score_mods", SEEDS)
    capped = ("cap * torch.tanh(score / cap)", "score.clamp(-cap, cap)")

    right = judged("13_score_mods", reference("13_score_mods"), hidden=False, seed=SEEDS[1])
    wrong = judged("13_score_mods", reference("13_score_mods", capped), hidden=False, seed=SEEDS[0])

    assert right.points == right.max_points
    assert {name for name, told in messages(wrong).items() if "hard cap" in told} == {"`soft_cap`"}


def test_a_question_without_an_answer_is_a_fault_that_says_so(students_place):
    right = own_answer("08_read_joint", reference("08_read_joint"))

    students_place("08_read_joint", SEEDS)

    with pytest.raises(questions.NotShippedError, match="no answer to a question"):
        points_of("08_read_joint", right, seed=SEEDS[1] + 1, hidden=False)


def test_practice_draws_a_seed_that_has_answers(students_place):
    assert questions.practice_seed("08_read_joint") not in SEEDS  # where the hidden part is, any seed

    students_place("08_read_joint", SEEDS)

    assert {questions.practice_seed("08_read_joint") for _ in range(60)} == set(SEEDS)
    assert questions.practice_seed("05_bias_silu_pass") not in SEEDS  # it asks nothing that a table could hold


def test_tables_of_several_processes_are_those_of_one(tmp_path, capfd):
    chosen = ("02_read_a_trace", "08_read_joint", "13_choose_attention")

    size = write_tables(tmp_path, chosen, seeds=2)

    texts = {each: (tmp_path / f"{each}.json").read_text("utf-8") for each in chosen}
    assert texts == {each: table_of(each, range(2)) for each in chosen}
    assert size == sum(map(len, texts.values()))
    said = [line.partition(":")[0] for line in capfd.readouterr().out.splitlines()]
    assert sorted(said) == list(chosen)


def test_a_table_counts_each_layer_once(monkeypatch):
    asked, known = [], baseline.known
    monkeypatch.setattr(baseline, "known", lambda layer: asked.append(layer) or known(layer))

    table = json.loads(table_of("17_baseline", (3,)))

    assert len(asked) == len(table["results"]) == 4  # two checks ask about all four layers


def test_equal_questions_are_asked_once_and_others_each_time():
    asked = []
    function = remembering(lambda *question: asked.append(question) or len(asked))
    program = object()

    found = [function(*question) for question in ([[1, 2]], [[1, 2]], [[1, "2"]], [program], [program], [], [])]

    assert found == [1, 1, 2, 3, 4, 5, 6]


def test_a_table_keeps_every_type():
    results = {"a": {"right": [1, True, None, 0.5, "x", {"n": 1, "": "x"}], "wrong": [["x", "y"]]}, "b": "x"}

    table = json.loads(questions.shipped_text([1], results))

    assert {key: questions.unpacked(value, table["texts"]) for key, value in table["results"].items()} == results
    assert table["texts"].count("x") == 1


CHECK = """
from autograder.exercises.registry import hidden_folder
from autograder.host.sandbox import open_sandbox
from autograder.practice import check, visible_checks
import answer
visible_checks._sandbox = lambda: open_sandbox(5, trust=True)  # others have tests of their own, and are probed first
assert hidden_folder() is None
score = check("08_read_joint", answer.read_joint)
print(score.record.points, score.record.max_points, score.record.status)
"""


def test_check_works_in_what_students_install(tmp_path):
    student_tree.copy_code(tmp_path / "course")
    shipped = tmp_path / "course" / questions.SHIPPED.relative_to(ROOT)
    shipped.mkdir()
    (shipped / "08_read_joint.json").write_text(table_of("08_read_joint", SEEDS), encoding="utf-8")
    (tmp_path / "answer.py").write_text(
        f"{find('08_read_joint').setup}\n{reference('08_read_joint')}", encoding="utf-8"
    )
    env = {k: v for k, v in os.environ.items() if k != "NBGRADER_EXECUTION"}
    env |= {"PYTHONPATH": f"{tmp_path / 'course'}:{tmp_path}", "HOME": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", CHECK], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )

    most = f"{sum(check.points for check in find('08_read_joint').checks):g}"
    assert done.stdout.split()[-3:] == [most, most, "graded"], done.stderr


def test_the_check_of_the_image_sees_a_function_that_knows_answers(tmp_path, capsys):

    secrets = tmp_path / "fingerprints.json"
    student_tree.write_fingerprints(secrets)
    student_tree.copy_code(tmp_path / "student")
    planted = tmp_path / "student" / "autograder" / "exercises" / "dynamo" / "read_guards.py"
    hidden = (Path(student_tree.HIDDEN) / "dynamo" / "read_guards.py").read_text(encoding="utf-8")
    start = hidden.index("def truth(")
    with planted.open("a", encoding="utf-8") as file:
        file.write(hidden[start : hidden.index("\n\n\n", start)])

    assert image_check.main(secrets, tmp_path / "student") == 1
    assert "read_guards.py" in capsys.readouterr().err
