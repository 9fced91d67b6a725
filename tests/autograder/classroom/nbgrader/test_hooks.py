"""Every hook and patch of nbgrader is in one list; its steps share the engine of their database and nothing else."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import Engine

from autograder.classroom.nbgrader import hooks
from autograder.classroom.nbgrader.course import Course, open_course
from tests.architecture.source_tree import ROOT, python_files

pytestmark = pytest.mark.usefixtures("quick_gradebooks")

LIBRARIES = {"nbgrader", "nbconvert", "nbformat", "traitlets", "jupyter_core"}
CONFIG = ROOT / "nbgrader_config.py"


def named(dotted: str) -> object:
    """Return the class or function of a dotted name."""
    module, _, name = dotted.rpartition(".")
    return getattr(import_module(module), name)


def patched(source: str) -> list[str]:
    """Return each name in a module of nbgrader's, or of what it stands on, that `source` assigns or deletes."""
    tree = ast.parse(source)
    foreign: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in LIBRARIES:
            foreign |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names = ((alias.asname or alias.name.split(".")[0], alias.name) for alias in node.names)
            foreign |= {bound: name if bound != name.split(".")[0] else bound for bound, name in names}
    foreign = {bound: name for bound, name in foreign.items() if name.split(".")[0] in LIBRARIES}
    found = []
    for node in ast.walk(tree):
        owner, attribute = None, ""
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            owner, attribute = node.value, node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("setattr", "delattr"):
            owner, attribute = node.args[0], getattr(node.args[1], "value", "?")
        path = []
        while isinstance(owner, ast.Attribute):
            path, owner = [owner.attr, *path], owner.value
        if isinstance(owner, ast.Name) and owner.id in foreign:
            found.append(".".join([foreign[owner.id], *path, str(attribute)]))
    return sorted(set(found))


def test_every_hook_can_be_imported_and_is_set_with_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COURSE_WORK", str(tmp_path))
    config = open_course(ROOT).api.config
    for hook in hooks.HOOKS:
        part, trait = hook.setting.split(".")
        assert config[part][trait] == hook.configured
        assert all(callable(named(name)) for name in hook.names)
        assert len(hook.why.split()) > 4
    assert len({hook.setting for hook in hooks.HOOKS}) == len(hooks.HOOKS)


def test_the_configuration_names_no_code_of_ours_but_the_list() -> None:
    texts = [n.value for n in ast.walk(ast.parse(CONFIG.read_text("utf-8"))) if isinstance(n, ast.Constant)]
    assert [text for text in texts if isinstance(text, str) and "autograder." in text] == []
    assert "hooks.install(c)" in CONFIG.read_text("utf-8")


def test_no_other_module_of_ours_patches_nbgrader() -> None:
    files = [*python_files("autograder", "demo", "benchmarks"), CONFIG]
    found = {path.relative_to(ROOT).as_posix(): patched(path.read_text("utf-8")) for path in files}
    assert {name: names for name, names in found.items() if names} == {
        "autograder/classroom/nbgrader/hooks.py": sorted(hooks.PATCHES)
    }


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from nbgrader import api\napi.Gradebook = 1", "nbgrader.api.Gradebook"),
        ("import nbgrader.api as a\na.Gradebook = 1", "nbgrader.api.Gradebook"),
        ("import nbgrader.api\nnbgrader.api.Gradebook.add = 1", "nbgrader.api.Gradebook.add"),
        ("from nbgrader.api import Gradebook\nsetattr(Gradebook, 'add', 1)", "nbgrader.api.Gradebook.add"),
        ("from nbconvert import exporters\ndel exporters.HTMLExporter", "nbconvert.exporters.HTMLExporter"),
    ],
)
def test_the_check_sees_a_patch(source: str, name: str) -> None:
    assert patched(source) == [name]


def test_the_check_leaves_settings_and_our_own_names_alone() -> None:
    assert patched("from traitlets.config import Config\nc = Config()\nc.Exchange.root = ''\nself.nbgrader = 1") == []


def test_jupyter_reads_the_list_without_loading_the_grader() -> None:
    code = "import sys\nfrom autograder.classroom.nbgrader import hooks\nsys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


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
    return Course(*[nowhere] * 9, api=steps)


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
