"""One set of versions: pyproject.toml asks, constraints.txt answers, environment.yml repeats, the environment obeys."""

import functools
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.architecture.source_tree import ROOT, imports_of, python_files

OLDEST_PYTHON = "3.11.2"  # Debian 12's
FIRST_PART_ENDS = "# Only for the extra cluster"


def pins(text: str) -> list[str]:
    """Return the lines `name==version` of a constraints file."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def constraints() -> str:
    """Return the text of constraints.txt."""
    return (ROOT / "constraints.txt").read_text(encoding="utf-8")


def installed() -> list[metadata.Distribution]:
    """Return what is installed, without what setuptools brings along for itself and puts on sys.path."""
    return list(metadata.distributions(path=[sysconfig.get_path("purelib")]))


def environment_pins(text: str) -> list[str]:
    """Return the pip requirements of an environment.yml without markers, and without the project itself."""
    dependencies = yaml.safe_load(text)["dependencies"]
    pip = next(entry["pip"] for entry in dependencies if isinstance(entry, dict))
    return [line.split(";")[0] for line in pip if not line.startswith("-e ")]


def asked_for() -> list[Requirement]:
    """Return every requirement of pyproject.toml, those of its extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    return [Requirement(line) for line in [*project["dependencies"], *(line for extra in extras for line in extra)]]


@functools.cache
def modules_of(distribution: str) -> frozenset[str]:
    """Return the top-level modules that a requirement of ours brings, as far as it is installed."""
    try:
        found = metadata.distribution(distribution)
    except metadata.PackageNotFoundError:  # of an extra that is not installed here, its own name is all there is
        return frozenset({distribution.replace("-", "_")})
    told = (found.read_text("top_level.txt") or "").split()
    return frozenset(told or {path.parts[0].split(".")[0] for path in found.files or ()})


def undeclared(imported: set[str], declared: set[str]) -> set[str]:
    """Return the third parties among `imported` that no requirement of `declared` brings by its own name."""
    ours = {
        "course_lib",
        "autograder",
        "tests",
        "benchmarks",
        "scripts",
        *(path.stem for path in (ROOT / "benchmarks").glob("*.py")),
    }
    names = {name.split(".")[0] for name in imported} - sys.stdlib_module_names - ours
    named = {
        name for name in names if canonicalize_name(name) in declared and name in modules_of(canonicalize_name(name))
    }
    left = names - named  # few, for which all that was asked for is looked through
    return {name for name in left if not any(name in modules_of(distribution) for distribution in declared)}


def test_environment_yml_repeats_the_first_part_of_the_constraints():
    first_part = constraints().split(FIRST_PART_ENDS)[0]

    assert environment_pins((ROOT / "environment.yml").read_text(encoding="utf-8")) == pins(first_part)


def test_the_comparison_sees_another_version():
    text = "dependencies:\n  - pip\n  - pip:\n      - torch==2.12.0\n      - -e .[dev]\n"

    assert environment_pins(text) == ["torch==2.12.0"] != pins("# torch\ntorch==2.13.0\n")


def test_every_line_pins_one_released_version():
    assert [line for line in pins(constraints()) if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*", line)] == []


def test_torch_is_pinned_without_a_local_part():
    assert "torch==2.13.0" in pins(constraints())


def test_the_constraints_answer_every_requirement():
    pinned = {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in pins(constraints())}

    for requirement in asked_for():
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def test_what_is_installed_is_what_is_pinned():
    versions = {canonicalize_name(one.name): one.version.split("+")[0] for one in installed()}
    pinned = {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in pins(constraints())}
    others = {
        name: (pinned[name], versions[name]) for name in pinned if versions.get(name, pinned[name]) != pinned[name]
    }

    assert others == {}


def test_every_pin_runs_on_the_oldest_python_we_name():
    asked = {one.name: one.metadata.get("Requires-Python") for one in installed()}

    assert {name: spec for name, spec in asked.items() if spec and OLDEST_PYTHON not in SpecifierSet(spec)} == {}


def conflicts(versions: Mapping[str, str], asked: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what distributions ask for and do not find among `versions`, as `pip check` does in seconds."""
    found = []
    for name, lines in asked.items():
        for requirement in map(Requirement, lines):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                version = versions.get(canonicalize_name(requirement.name))
                if version is None or not requirement.specifier.contains(version, prereleases=True):
                    found.append(f"{name} asks for {requirement}, here is {version}")
    return found


def test_what_is_installed_finds_what_it_asks_for():
    every = installed()
    versions = {canonicalize_name(one.name): one.version for one in metadata.distributions()}

    assert conflicts(versions, {one.name: one.requires or () for one in every}) == []


def test_the_check_sees_a_conflict_and_what_is_missing():
    asked = {"a": ["b>=2", "c; extra == 'more'", "d"], "b": ["a"]}

    assert conflicts({"a": "1.0", "b": "1.9"}, asked) == ["a asks for b>=2, here is 1.9", "a asks for d, here is None"]


@pytest.mark.parametrize("folder", ["course_lib", "autograder", "scripts", "benchmarks"])
def test_every_third_party_that_is_imported_is_declared(folder):
    declared = {canonicalize_name(requirement.name) for requirement in asked_for()}
    stray = {str(path.relative_to(ROOT)): undeclared(imports_of(path), declared) for path in python_files(folder)}

    assert {path: names for path, names in stray.items() if names} == {}


def test_the_check_sees_an_undeclared_import():
    assert undeclared({"yaml.safe_load", "torch.nn", "json"}, {"torch"}) == {"yaml"}


def test_the_list_of_requirements_is_that_of_pyproject():
    script = Path("scripts/list_requirements.py")
    answer = subprocess.run([sys.executable, script, "dev"], capture_output=True, text=True, cwd=ROOT, check=True)

    assert {"rich", "pytest"} <= set(answer.stdout.split())


def test_an_extra_that_does_not_exist_is_refused():
    script = Path("scripts/list_requirements.py")
    answer = subprocess.run([sys.executable, script, "gpu"], capture_output=True, text=True, cwd=ROOT, check=False)

    assert answer.returncode != 0
    assert "no extra gpu" in answer.stderr
