"""A command in a fork has its own folder, environment, output and status, as a typed one has."""

import os
from pathlib import Path

from tests.autograder.host.forked_command import fork_command


def run(tmp_path: Path, text: str, *arguments: str) -> tuple[int, str]:
    script = tmp_path / "script"
    script.write_text(text)
    return fork_command([str(script), *arguments], tmp_path, {"ONLY": "this"}).finish()


def test_it_begins_as_a_script_and_ends_with_its_status(tmp_path: Path) -> None:
    text = "import os, sys\nprint(__name__, os.getcwd(), dict(os.environ), sys.argv[1:])\nsys.exit(3)\n"
    before = (Path.cwd(), dict(os.environ))

    assert run(tmp_path, text, "a b") == (3, f"__main__ {tmp_path} {{'ONLY': 'this'}} ['a b']\n")
    assert (Path.cwd(), dict(os.environ)) == before


def test_what_its_own_processes_print_is_heard_and_a_crash_is_no_success(tmp_path: Path) -> None:
    status, said = run(tmp_path, "import os\nos.system('/bin/echo from a child')\n1 / 0\n")
    assert status == 1
    assert said.startswith("from a child\n")
    assert "ZeroDivisionError" in said


def test_a_module_is_run_as_python_does_it(tmp_path: Path) -> None:
    status, said = fork_command(["-m", "json.tool", "/nowhere"], tmp_path, {}).finish()
    assert status != 0
    assert "/nowhere" in said
