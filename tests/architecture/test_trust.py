"""The host holds no tool that turns a student's bytes into running code: checked in its source, name by name."""

import ast
import functools
from fnmatch import fnmatch

import pytest

from tests.architecture.source_tree import ROOT, python_files

# Modules and functions that load, unpickle or evaluate what they are given.
FORBIDDEN_MODULES = {
    "pickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "code", "codeop",
    "importlib", "imp", "runpy", "pkgutil", "zipimport",
}  # fmt: skip
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "torch.load", "torch.jit.load", "torch.export.load", "torch.hub.load",
    "torch.package.PackageImporter", "numpy.load", "np.load", "yaml.load", "yaml.unsafe_load", "os.system", "os.popen",
}  # fmt: skip

# All that runs outside the sandbox.
TRUSTED = ("protocol", "host", "exercises", "classroom", "practice")

# Where one of them is right, and why. No bytes of a student reach these.
ALLOWED = {
    ("autograder/exercises/registry.py", "importlib"): "an exercise is found by its id, the name of a file of ours",
    ("autograder/exercises/questions.py", "importlib"): "a hidden part is found by the id of an exercise of ours",
    ("autograder/exercises/quality/question_tables.py", "importlib"): "as above",
    ("autograder/exercises/quality/in_process.py", "compile"): "reads the reference solutions, which are ours",
    ("autograder/exercises/quality/in_process.py", "exec"): "as above",
    ("autograder/exercises/hidden/torchscript/limit_programs.py", "compile"): "reads programs that the same file draws",
    ("autograder/exercises/hidden/torchscript/limit_programs.py", "exec"): "as above; TorchScript wants their text",
    ("autograder/exercises/measuring/measure.py", "importlib"): "find_spec tells the folder of torch, a fixed name",
    ("autograder/exercises/programs/packages.py", "torch.export.load"): "text for a worker, which loads files of ours",
    ("autograder/classroom/report/summary.py", "importlib"): "importlib.metadata tells the versions of packages",
    ("autograder/classroom/exercise_versions.py", "importlib"): "importlib.metadata tells the version of torch",
    ("autograder/host/sandbox/view.py", "importlib"): "find_spec tells the folder of course_lib, a fixed name",
    ("autograder/host/artifacts/copied_functions.py", "compile"): "instructions are compared, and never run",
    ("autograder/host/artifacts/copied_functions.py", "importlib"): "finds and reads files of installed packages",
    ("autograder/host/sandbox/inside/bootstrap.py", "compile"): "runs inside the sandbox, never in the host",
    ("autograder/host/sandbox/inside/bootstrap.py", "exec"): "runs inside the sandbox, never in the host",
}


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for such an expression, else an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr}"
    return ""


def dangerous_names(source: str) -> set[str]:
    """Return the forbidden modules that `source` imports and the forbidden functions that it names."""
    nodes = list(ast.walk(ast.parse(source)))
    imported = {name for node in nodes for name in names_imported(node)}
    modules = {name.split(".")[0] for name in imported} & FORBIDDEN_MODULES
    named = {dotted(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)} | imported
    shell = {"shell=True" for node in nodes if isinstance(node, ast.Call) and any(map(asks_for_a_shell, node.keywords))}
    return modules | (named & FORBIDDEN_CALLS) | shell


def names_imported(node: ast.AST) -> set[str]:
    """Return the dotted names that one import statement brings; of anything else, none."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module:
        return {f"{node.module}.{alias.name}" for alias in node.names}
    return set()


def asks_for_a_shell(word: ast.keyword) -> bool:
    """Tell whether a keyword argument asks for a shell."""
    return word.arg == "shell" and not (isinstance(word.value, ast.Constant) and word.value.value is False)


@functools.cache
def used_in_the_host() -> set[tuple[str, str]]:
    """Return each pair of a host file and a dangerous name in it."""
    files = python_files(*(f"autograder/{part}" for part in TRUSTED))
    return {
        (str(path.relative_to(ROOT)), name)
        for path in files
        for name in dangerous_names(path.read_text(encoding="utf-8"))
    }


def is_allowed(use: tuple[str, str]) -> bool:
    """Tell whether a use is one of those allowed."""
    return any(fnmatch(use[0], file) and use[1] == name for file, name in ALLOWED)


def test_the_host_uses_nothing_that_runs_what_it_is_given():
    assert sorted(use for use in used_in_the_host() if not is_allowed(use)) == []


def test_every_exception_is_still_needed():
    uses = used_in_the_host()

    assert [each for each in ALLOWED if not any(fnmatch(use[0], each[0]) and use[1] == each[1] for use in uses)] == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import pickle", "pickle"),
        ("from pickle import loads", "pickle"),
        ("def f(path):\n    import dill as d", "dill"),
        ("import torch\ntorch.load('x', weights_only=True)", "torch.load"),
        ("from torch import load", "torch.load"),
        ("from torch.jit import load as harmless", "torch.jit.load"),
        ("eval('1')", "eval"),
        ("run = exec", "exec"),
        ("import importlib.util", "importlib"),
        ("import subprocess\nsubprocess.run('ls', shell=True)", "shell=True"),
    ],
)
def test_the_check_sees_what_could_run_a_students_bytes(source, name):
    assert name in dangerous_names(source)


def test_the_check_leaves_an_evaluation_mode_alone():
    assert dangerous_names("model.eval()\nre.compile('x')\ntorch.compile(model)\ncode = 1") == set()
