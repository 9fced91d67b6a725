"""One record as Gradescope and Classroom 50 read it, checked against what they publish.

`GRADESCOPE` states the fields of https://gradescope-autograders.readthedocs.io/en/latest/specs/ ("Output format"), and
`CLASSROOM50` those of https://github.com/foundation50/classroom50/blob/main/schemas/result-v1.schema.json.
"""

import json

import jsonschema
import pytest

from autograder.classroom import cli
from autograder.classroom.platforms.platform_results import IDENTITY, NotGradedError, results_json
from autograder.classroom.status import UsageError
from autograder.exercises import of_assignment
from autograder.host.records import ExerciseRecord, ExerciseStatus
from tests.autograder.classroom.report.sample_class import HOSTILE, attention_exercise, fusion_exercise, submission

TEXT, NUMBER, WHOLE = {"type": "string", "minLength": 1}, {"type": "number"}, {"type": "integer", "minimum": 0}
SHOWN = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}


def an_object(fields: dict[str, object], *optional: str) -> dict[str, object]:
    required = [name for name in fields if name not in optional]
    return {"type": "object", "additionalProperties": False, "properties": fields, "required": required}


GRADESCOPE = an_object(
    {
        "score": NUMBER,
        "output": TEXT,
        "visibility": SHOWN,
        "stdout_visibility": SHOWN,
        "tests": {
            "type": "array",
            "items": an_object({"score": NUMBER, "max_score": NUMBER, "name": TEXT, "number": TEXT, "output": TEXT}),
        },
    },
    "output",
)
TIME = {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$"}
CLASSROOM50 = an_object(
    {
        "schema": {"const": "classroom50/result/v1"},
        **dict.fromkeys(("classroom", "assignment", "owner", "commit", "release", "review"), TEXT),
        "assignment_type": {"enum": ["individual", "group"]},
        "submission": {"type": "string", "pattern": "^submit/"},
        "datetime": TIME,
        "score": WHOLE,
        "max-score": WHOLE,
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"test-name": TEXT, "passed": {"type": "boolean"}, "score": WHOLE, "max-score": WHOLE},
                "required": ["test-name", "passed", "score", "max-score"],
            },
        },
    }
)
RUNNER = {name: field for field, name in IDENTITY.items()} | {
    "ASSIGNMENT_TYPE": "individual",
    "SUBMISSION_TAG": "submit/2026-01-15T11-30-00Z-a1b2c3d",
}
RECORD = submission("ana", attention_exercise(4), fusion_exercise(1, 8.29, name=HOSTILE), notes=(HOSTILE,))


def test_gradescope_gets_a_test_for_each_exercise() -> None:
    made = json.loads(results_json(RECORD, "gradescope", {}))
    jsonschema.validate(made, GRADESCOPE)
    assert (made["score"], [(t["score"], t["max_score"]) for t in made["tests"]]) == (
        15.29,
        [(7.0, 10.0), (8.29, 12.0)],
    )
    jsonschema.validate(json.loads(results_json(submission("bo"), "gradescope", {})), GRADESCOPE)


def test_classroom50_gets_whole_numbers() -> None:
    made = json.loads(results_json(RECORD, "classroom50", RUNNER))
    jsonschema.validate(made, CLASSROOM50)
    assert (made["score"], made["max-score"]) == (1529, 2200)
    assert [(t["passed"], t["score"], t["max-score"]) for t in made["tests"]] == [
        (False, 700, 1000),
        (False, 829, 1200),
    ]
    full = json.loads(results_json(submission("bo", attention_exercise(6)), "classroom50", RUNNER))
    assert full["tests"][0]["passed"]


@pytest.mark.parametrize(("platform", "most"), [("gradescope", "max_score"), ("classroom50", "max-score")])
def test_a_dropped_exercise_is_shown_and_worth_nothing(platform: str, most: str) -> None:
    made = json.loads(results_json(RECORD, platform, RUNNER, ["05_bias_silu_pass"]))
    assert made["score"] == (7.0 if platform == "gradescope" else 700)
    assert [(test["score"], test[most]) for test in made["tests"]][1] == (0, 0)
    assert "left alone" in made["tests"][1]["output"]


@pytest.mark.parametrize("platform", ["gradescope", "classroom50"])
def test_a_hidden_check_is_named_by_its_category_only(platform: str) -> None:
    made = results_json(RECORD, platform, RUNNER)
    assert "fully masked row" not in made
    assert "cases you have not seen" in made
    assert "\\ud800" not in made
    assert "\\u001b" not in made


@pytest.mark.parametrize("platform", ["gradescope", "classroom50"])
@pytest.mark.parametrize("status", [ExerciseStatus.GRADER_ERROR, ExerciseStatus.UNDECIDED])
def test_what_was_not_graded_gets_no_result(platform: str, status: ExerciseStatus) -> None:
    lost = ExerciseRecord("05_bias_silu_pass", "graph", 0.0, 0.0, status, "the sandbox is missing")
    with pytest.raises(NotGradedError, match="05_bias_silu_pass was not graded, so no result is written: the sandbox"):
        results_json(submission("ana", attention_exercise(6), lost), platform, RUNNER)


@pytest.mark.parametrize("name", IDENTITY.values())
def test_classroom50_needs_what_its_runner_says(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is not set; Classroom 50's runner sets it"):
        results_json(RECORD, "classroom50", RUNNER | {name: ""})


def test_the_command_prints_the_file(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_WORK", str(tmp_path / "work"))
    notebook = tmp_path / "some_student" / "04_fx_capture" / "04_fx_capture.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text(json.dumps({"cells": []}))
    assert cli.main(["grade", str(notebook), "--format", "gradescope"]) == 0
    made = json.loads(capsys.readouterr().out)
    jsonschema.validate(made, GRADESCOPE)
    assert [test["name"] for test in made["tests"]] == list(of_assignment("04_fx_capture"))
    assert made["score"] == 0
