"""Who may import whom. The layout of the packages is also the list of what the sandbox shows to student code."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from tests.architecture.source_tree import PACKAGES, ROOT, imported_modules, imports_of, module_name, python_files

# What a package may import besides itself, the standard library and third parties; a longer name wins.
MAY_IMPORT: dict[str, set[str]] = {
    "course_lib": {"course_lib.errors"},
    "course_lib.errors": set(),
    "course_lib.models": {"course_lib.errors"},
    "course_lib.training": {"course_lib.errors", "course_lib.models"},
    "course_lib.capture": {"course_lib.errors"},
    "course_lib.graph": {"course_lib.errors", "course_lib.capture"},
    "course_lib.kernels": {"course_lib.errors"},
    "course_lib.fusion": {"course_lib.errors", "course_lib.capture", "course_lib.graph", "course_lib.kernels"},
    "course_lib.verify": {"course_lib.errors", "course_lib.capture", "course_lib.kernels"},
    "course_lib.schedule": {
        "course_lib.errors",
        "course_lib.capture",
        "course_lib.graph",
        "course_lib.fusion",
        "course_lib.verify",
    },
    "course_lib.machine": {"course_lib.errors"},
    "course_lib.backends": {
        "course_lib.errors",
        "course_lib.capture",
        "course_lib.graph",
        "course_lib.fusion",
        "course_lib.machine",
    },
    "course_lib.timing": {"course_lib.errors"},
    "course_lib.profiling": {"course_lib.errors", "course_lib.graph", "course_lib.timing"},
    "course_lib.doctor": {"course_lib.timing"},
    "autograder": set(),
    "autograder.__main__": {"autograder.host"},
    "autograder.protocol": set(),
    "autograder.worker": {"autograder.protocol", "course_lib"},
    "autograder.host": {"autograder.protocol", "course_lib"},
    "autograder.practice": {"autograder.host"},
}
NOTEBOOKS_MAY_IMPORT = {"course_lib", "autograder.practice"}


def covers(package: str, name: str) -> bool:
    """Tell whether `name` is `package` or lies in it."""
    return name == package or name.startswith(package + ".")


def is_ours(name: str) -> bool:
    """Tell whether `name` belongs to this project."""
    return covers("course_lib", name) or covers("autograder", name)


def forbidden_imports(importer: str, imported: set[str]) -> list[str]:
    """Return those of `imported` that the table does not allow to the module `importer`."""
    rule = max((package for package in MAY_IMPORT if covers(package, importer)), key=len)
    # A root's own name covers every package, so a root, and a package that the table forgot, may import nothing of it.
    allowed = MAY_IMPORT[rule] | ({rule} - set(PACKAGES))
    return sorted(name for name in imported if is_ours(name) and not any(covers(one, name) for one in allowed))


def outside_standard_library(imported: set[str], own: str) -> list[str]:
    """Return those of `imported` that are neither in the standard library nor in the package `own`."""
    return sorted(
        name for name in imported if name.split(".")[0] not in sys.stdlib_module_names and not covers(own, name)
    )


def notebook_imports(notebook: dict[str, Any]) -> set[str]:
    """Return what the code cells of a notebook import, lines for IPython left out."""
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    python = (re.sub(r"(?m)^\s*[%!].*$", "pass", cell) for cell in cells)
    return {name for cell in python for name in imported_modules(cell, package="notebook")}


def test_a_module_imports_only_what_the_table_allows():
    modules = python_files("course_lib", "autograder")
    strays = {module_name(path): forbidden_imports(module_name(path), imports_of(path)) for path in modules}

    assert modules
    assert {name: found for name, found in strays.items() if found} == {}


def test_the_protocol_needs_only_the_standard_library():
    modules = python_files("autograder/protocol")
    strays = {module_name(path): outside_standard_library(imports_of(path), "autograder.protocol") for path in modules}

    assert modules
    assert {name: found for name, found in strays.items() if found} == {}


def test_notebooks_import_only_the_library_and_practice():
    for path in sorted(ROOT.glob("notebooks/*/*.ipynb")):
        ours = {name for name in notebook_imports(json.loads(path.read_text("utf-8"))) if is_ours(name)}
        strays = [name for name in ours if not any(covers(one, name) for one in NOTEBOOKS_MAY_IMPORT)]
        assert strays == [], f"{path.name} imports {strays}"


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("autograder.worker.main", "from autograder.host import records"),
        ("autograder.worker.main", "import autograder.host.judge"),
        ("autograder.host.judge", "from autograder import worker"),
        ("autograder.host.judge", "def late():\n    from ..worker import main"),
        ("autograder", "from autograder.host import cli"),
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
