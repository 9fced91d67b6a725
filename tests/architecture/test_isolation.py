"""What is loaded, seen from a fresh interpreter: the worker without the host, the packages without Jupyter."""

import importlib.util
import json
import subprocess
import sys

import pytest

from tests.architecture.source_tree import ROOT, module_name, python_files

# Every module starts without these, except those whose job is nbgrader.
JUPYTER = ("IPython", "ipykernel", "ipywidgets", "jupyter_client", "jupyter_core", "jupyter_server", "jupyterlab")
NBGRADER = ("nbclient", "nbconvert", "nbformat", "nbgrader", "traitlets")
NEEDS_NBGRADER = tuple(f"autograder.classroom.{part}" for part in ("nbgrader", "pages", "platforms", "roster"))
TRUSTED = tuple(f"autograder.{part}" for part in ("host", "exercises", "practice", "classroom"))
NEEDS_TRITON = "course_lib.kernels.triton"

# What is imported stays until the process ends: it is no garbage to look for, and nothing to take down in order.
IMPORT_WITHOUT = """
import gc, importlib, os, sys

gc.disable()

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked}:
            raise ImportError(f"{{name}} is not to be needed here")

sys.meta_path.insert(0, Refuse())
for name in {modules}:
    importlib.import_module(name)
os._exit(0)
"""


def fresh_interpreter(code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in an interpreter of its own, in the root folder."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)


def loaded_by(statement: str) -> list[str]:
    """Return the modules that are loaded once `statement` has run in a fresh interpreter."""
    answer = fresh_interpreter(f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))")
    assert answer.returncode == 0, answer.stderr
    modules: list[str] = json.loads(answer.stdout.splitlines()[-1])
    return modules


def host_modules(modules: list[str]) -> list[str]:
    """Return those of `modules` that only the judge may have loaded."""
    return [name for name in modules if name.startswith(TRUSTED)]


def importable_modules() -> list[str]:
    """Return the names of all our modules that must start without Jupyter, and without an extra that is not here."""
    files = python_files("course_lib", "autograder")
    names = [module_name(path) for path in files if "answers" not in path.parts]  # these are read as text
    excepted = NEEDS_NBGRADER if importlib.util.find_spec("triton") else (*NEEDS_NBGRADER, NEEDS_TRITON)
    return [name for name in names if not name.startswith(excepted) and not name.endswith("__main__")]


def test_the_worker_loads_no_module_of_the_host():
    loaded = loaded_by("import autograder.worker.main")

    assert "autograder.worker.main" in loaded
    assert host_modules(loaded) == []


def test_the_protocol_loads_where_nothing_is_installed():
    code = (
        f"import sys; sys.path = [p for p in sys.path if 'site-packages' not in p] + [{str(ROOT)!r}]\n"
        "import autograder.protocol\n"
        "extra = {m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names) - {'autograder', '__main__'}\n"
        "extra = {m for m in extra if not m.startswith('_')}\n"
        "assert not extra, extra\n"
    )
    done = subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_check_sees_a_host_module_that_is_loaded():
    assert host_modules(loaded_by("import autograder.host.records")) != []


def test_every_module_imports_without_jupyter_and_nbgrader():
    answer = fresh_interpreter(IMPORT_WITHOUT.format(blocked=JUPYTER + NBGRADER, modules=importable_modules()))

    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("module", ["nbgrader", "jupyterlab"])
def test_the_check_refuses_a_module_that_needs_jupyter(module):
    answer = fresh_interpreter(IMPORT_WITHOUT.format(blocked=JUPYTER + NBGRADER, modules=[module]))

    assert "is not to be needed here" in answer.stderr
