"""The steps of nbgrader share the engine that compiles their statements, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import Engine

from autograder.classroom.nbgrader.course import Course

pytestmark = pytest.mark.usefixtures("quick_gradebooks")


class Steps:
    """Stands for nbgrader's interface: a step that enters a student, or does not get that far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engines: list[Engine] = []

    def enter(self, student: str) -> dict[str, Any]:
        with Gradebook(self.url) as gradebook:
            self.engines.append(gradebook.engine)
            gradebook.add_student(student)
            return {"success": len(gradebook.students) == len(self.engines)}


def course_with(steps: Any) -> Course:
    nowhere = Path("/nowhere")
    return Course(nowhere, nowhere, nowhere, nowhere, nowhere, nowhere, nowhere, nowhere, api=steps)


def test_steps_share_the_engine_of_their_database(tmp_path: Path) -> None:
    one, other = (Steps(f"sqlite:///{tmp_path}/{name}.db") for name in ("one", "other"))
    for student in ("ada", "bob"):
        for steps in (one, other):
            course_with(steps).do("enter", student)
    assert one.engines[0] is one.engines[1] is not other.engines[0]
    assert other.engines[0] is other.engines[1]


def test_no_connection_outlives_its_gradebook(tmp_path: Path) -> None:
    course_with(Steps(f"sqlite:///{tmp_path}/one.db")).do("enter", "ada")
    opened = [link.resolve() for link in Path("/proc/self/fd").iterdir()]
    assert not [path for path in opened if tmp_path in path.parents]


def test_after_a_step_gradebooks_have_engines_of_their_own_even_if_it_failed(tmp_path: Path) -> None:
    steps = Steps(f"sqlite:///{tmp_path}/one.db")
    with pytest.raises(AttributeError):
        course_with(steps).do("no_such_step")
    course_with(steps).do("enter", "ada")
    with Gradebook(steps.url) as outside:
        assert outside.engine is not steps.engines[0]
