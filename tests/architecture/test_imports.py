"""Who may import whom. The layout of the packages is also the list of what the sandbox shows to student code."""

import json
import re
import subprocess
import sys
from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source_tree import PACKAGES, ROOT, imported_modules, imports_of, module_name, python_files

# What a package may import besides itself, the standard library and third parties; a longer name wins.
MAY_IMPORT: dict[str, set[str]] = {
    "course_lib": {"course_lib.errors", "course_lib.show"},
    "course_lib.errors": set(),
    "course_lib.show": set(),
    "course_lib.isolation": {"course_lib.layouts"},
    "course_lib.module_classes": set(),
    "course_lib.module_hooks": set(),
    "course_lib.silence": set(),
    "course_lib.layouts": {"course_lib.errors"},
    "course_lib.models": {"course_lib.errors"},
    "course_lib.training": {"course_lib.errors", "course_lib.models"},
    "course_lib.capture": {
        "course_lib.errors",
        "course_lib.isolation",
        "course_lib.layouts",
        "course_lib.module_classes",
        "course_lib.module_hooks",
        "course_lib.show",
        "course_lib.silence",
    },
    "course_lib.graph": {
        "course_lib.errors",
        "course_lib.isolation",
        "course_lib.layouts",
        "course_lib.module_classes",
        "course_lib.module_hooks",
        "course_lib.capture",
        "course_lib.show",
        "course_lib.silence",
    },
    "course_lib.kernels": {"course_lib.errors"},
    "course_lib.kernel_programs": {"course_lib.errors", "course_lib.graph", "course_lib.kernels"},
    "course_lib.fusion": {
        "course_lib.errors",
        "course_lib.isolation",
        "course_lib.layouts",
        "course_lib.module_classes",
        "course_lib.module_hooks",
        "course_lib.capture",
        "course_lib.graph",
        "course_lib.kernels",
        "course_lib.silence",
    },
    "course_lib.verify": {
        "course_lib.errors",
        "course_lib.isolation",
        "course_lib.layouts",
        "course_lib.capture",
        "course_lib.kernels",
    },
    "course_lib.schedule": {
        "course_lib.errors",
        "course_lib.isolation",
        "course_lib.module_classes",
        "course_lib.module_hooks",
        "course_lib.capture",
        "course_lib.graph",
        "course_lib.fusion",
        "course_lib.verify",
        "course_lib.show",
        "course_lib.silence",
    },
    "course_lib.launches": {"course_lib.errors"},
    "course_lib.machine": {"course_lib.errors"},
    "course_lib.inductor_passes": {"course_lib.errors", "course_lib.isolation", "course_lib.kernels"},
    "course_lib.backends": {
        "course_lib.errors",
        "course_lib.capture",
        "course_lib.graph",
        "course_lib.fusion",
        "course_lib.machine",
        "course_lib.show",
    },
    "course_lib.timing": {"course_lib.errors", "course_lib.show"},
    "course_lib.profiling": {
        "course_lib.errors",
        "course_lib.graph",
        "course_lib.isolation",
        "course_lib.timing",
        "course_lib.show",
    },
    "course_lib.doctor": {"course_lib.timing", "course_lib.show"},
    "autograder": set(),
    "autograder.__main__": {"autograder.classroom"},
    "autograder.course_settings": {"autograder.host"},
    "autograder.protocol": set(),
    "autograder.worker": {"autograder.protocol", "course_lib"},
    "autograder.host": {"autograder.protocol", "course_lib"},
    "autograder.exercises": {"autograder.host", "course_lib"},
    "autograder.practice": {"autograder.course_settings", "autograder.host", "autograder.exercises", "course_lib"},
    "autograder.classroom": {"autograder.course_settings", "autograder.host", "autograder.exercises"},
    "autograder.classroom.disputes": {
        "autograder.classroom",
        "autograder.host",
        "autograder.exercises",
        "autograder.protocol",
    },
    "demo": {"autograder.classroom", "autograder.host", "autograder.exercises"},
}
# What students do not install: nothing that they install may need it.
NOT_INSTALLED = (
    "autograder.__main__",
    "autograder.classroom",
    "autograder.exercises.hidden",
    "autograder.exercises.quality",
    "demo",
)
NOTEBOOKS_MAY_IMPORT = {"course_lib", "autograder.practice"}


def covers(package: str, name: str) -> bool:
    """Tell whether `name` is `package` or lies in it."""
    return name == package or name.startswith(package + ".")


def is_ours(name: str) -> bool:
    """Tell whether `name` belongs to this project."""
    return any(covers(package, name) for package in (*PACKAGES, "demo"))


def forbidden_imports(importer: str, imported: Set[str]) -> list[str]:
    """Return those of `imported` that the table does not allow to the module `importer`."""
    rule = max((package for package in MAY_IMPORT if covers(package, importer)), key=len)
    # A root's own name covers every package, so a root, and a package that the table forgot, may import nothing of it.
    allowed = MAY_IMPORT[rule] | ({rule} - set(PACKAGES))
    return sorted(name for name in imported if is_ours(name) and not any(covers(one, name) for one in allowed))


def strays(path: Path, package: str) -> list[str]:
    """Return what the file at `path` imports of `package`."""
    return sorted(name for name in imports_of(path) if covers(package, name))


def outside_standard_library(imported: Set[str], own: str) -> list[str]:
    """Return those of `imported` that are neither in the standard library nor in the package `own`."""
    return sorted(
        name for name in imported if name.split(".")[0] not in sys.stdlib_module_names and not covers(own, name)
    )


def notebook_imports(notebook: dict[str, Any]) -> set[str]:
    """Return what the code cells of a notebook import, lines for IPython left out."""
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    python = (re.sub(r"(?m)^\s*[%!].*$", "pass", cell) for cell in cells)
    return {name for cell in python for name in imported_modules(cell, package="notebook")}


def is_installed(name: str) -> bool:
    """Tell whether students install what `name` lies in; third parties count as installed."""
    return not any(covers(package, name) for package in NOT_INSTALLED)


def packages() -> list[str]:
    """Return the dotted name of each folder with code."""
    return [module_name(path) for path in python_files(*PACKAGES, "demo") if path.name == "__init__.py"]


def arrows(package: str) -> dict[str, set[str]]:
    """Return, for each file and folder directly in `package`, those others in it that it imports from."""
    found: dict[str, set[str]] = {}
    for path in python_files(package.replace(".", "/")):
        part = module_name(path).removeprefix(package).split(".")[1:2]
        inside = {name.removeprefix(f"{package}.").split(".")[0] for name in imports_of(path) if covers(package, name)}
        if part:
            found.setdefault(part[0], set()).update(inside - {part[0], package})
    return {part: to & set(found) for part, to in found.items()}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return the nodes of `graph` that lie on a circle or above one; none if all arrows go one way."""
    left = {node: set(to) for node, to in graph.items()}
    while done := [node for node, to in left.items() if not to]:
        left = {node: to - set(done) for node, to in left.items() if node not in done}
    return sorted(left)


def test_the_check_sees_a_circle():
    assert circle({"kinds": {"session"}, "checks": {"kinds"}, "session": set()}) == []
    assert circle({"kinds": {"session", "checks"}, "checks": {"kinds"}, "session": set()}) == ["checks", "kinds"]


def test_a_module_imports_only_what_the_table_allows():
    modules = python_files("course_lib", "autograder", "demo")
    strays = {module_name(path): forbidden_imports(module_name(path), imports_of(path)) for path in modules}

    assert modules
    assert {name: found for name, found in strays.items() if found} == {}


def test_the_protocol_needs_only_the_standard_library():
    modules = python_files("autograder/protocol")
    strays = {module_name(path): outside_standard_library(imports_of(path), "autograder.protocol") for path in modules}

    assert modules
    assert {name: found for name, found in strays.items() if found} == {}


def test_what_students_install_needs_nothing_that_they_do_not():
    modules = [path for path in python_files(*PACKAGES) if is_installed(module_name(path))]
    strays = {module_name(path): [name for name in imports_of(path) if not is_installed(name)] for path in modules}

    assert {name: found for name, found in strays.items() if found} == {}


def test_no_arrow_between_the_parts_of_a_package_goes_back_up():
    assert {package: found for package in packages() if (found := circle(arrows(package)))} == {}


def test_notebooks_import_only_the_library_and_practice():
    for path in sorted(ROOT.glob("notebooks/*/*.ipynb")):
        ours = {name for name in notebook_imports(json.loads(path.read_text("utf-8"))) if is_ours(name)}
        strays = [name for name in ours if not any(covers(one, name) for one in NOTEBOOKS_MAY_IMPORT)]
        assert strays == [], f"{path.name} imports {strays}"


def test_benchmarks_and_tests_are_apart():
    """Benchmarks import no test; only the tests of benchmarks import them."""
    measuring = {module_name(path): strays(path, "tests") for path in python_files("benchmarks", "scripts")}
    others = (path for path in python_files("tests") if not path.is_relative_to(ROOT / "tests" / "benchmarks"))
    testing = {module_name(path): strays(path, "benchmarks") for path in others}

    assert {name: found for name, found in (measuring | testing).items() if found} == {}


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("autograder.worker.main", "from autograder.host import records"),
        ("autograder.worker.main", "import autograder.host.judge"),
        ("autograder.host.judge", "from autograder import worker"),
        ("autograder.host.judge", "def late():\n    from ..worker import main"),
        ("autograder", "from autograder.host import judge"),
        ("autograder.host.judge", "from autograder.exercises import find"),
        ("autograder.exercises.registry", "from autograder.classroom import cli"),
        ("autograder.practice.visible_checks", "from autograder.classroom import grading"),
        ("autograder.classroom.cli", "import demo"),
        ("course_lib.graph.table", "from autograder.protocol import frames"),
        ("course_lib.graph.table", "from course_lib.fusion import rewrite"),
        ("course_lib.capture.fx", "from course_lib import graph"),
        ("course_lib.new_package", "from course_lib import graph"),
    ],
)
def test_the_check_refuses_an_import_against_the_table(importer, source):
    imported = imported_modules(source, package=importer.rpartition(".")[0])

    assert forbidden_imports(importer, imported)


def test_the_check_refuses_a_third_party_in_the_protocol():
    assert outside_standard_library(imported_modules("import torch", package="x"), "autograder.protocol") == ["torch"]


def test_the_check_sees_a_notebook_that_imports_the_host():
    cell = {"cell_type": "code", "source": ["%matplotlib inline\n", "from autograder.host import grading\n"]}

    assert notebook_imports({"cells": [cell]}) == {"autograder.host.grading"}


WITHOUT_CAPTURE = """
import importlib, pathlib, sys
sys.modules["course_lib.capture"] = None
for path in sorted(pathlib.Path("course_lib/graph").rglob("*.py")):
    importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
"""


def test_graphs_are_read_where_capture_is_hidden_from_answers():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CAPTURE], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
