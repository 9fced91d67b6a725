"""The shell scripts behind make say what is missing in one sentence, and the Makefile explains every target."""

import os
import re
import shutil
import subprocess

import pytest

from tests.architecture.source_tree import ROOT

SCRIPTS = [*sorted(ROOT.glob("scripts/*.sh")), ROOT / ".ci" / "run"]
PROMISED_TARGETS = {
    "demo",
    "test",
    "lab",
    "look",
    "release",
    "grade",
    "bench",
    "gpu-check",
    "image",
    "image-check",
    "lint",
    "format",
    "help",
}


def run(*command: str, path: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the root folder, with `path` as PATH, where a machine has no Python of Debian's."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHON3"}
    inherited["DEBIAN_PYTHON3"] = "/no/such/python3"
    env = {**inherited, **environment, **({"PATH": path} if path else {})}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, check=False)


@pytest.fixture
def commands(tmp_path):
    """Return a function that puts a fake command on a PATH which holds nothing else, and returns that PATH."""

    def put(**scripts: str) -> str:
        for name, script in scripts.items():
            file = tmp_path / name.replace("_", "-")
            file.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
            file.chmod(0o755)
        return str(tmp_path)

    return put


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_stops_at_its_first_error_and_parses(script):
    text = script.read_text(encoding="utf-8")

    assert "\nset -euo pipefail\n" in text
    assert os.access(script, os.X_OK)
    assert run("bash", "-n", str(script)).returncode == 0


def test_a_student_without_root_reads_the_command_that_installs_what_is_missing(commands):
    path = commands(id="echo 1000", apt_get="exit 1")
    answer = run("/bin/bash", "scripts/system_packages.sh", "dot=graphviz", "bwrap=bubblewrap", path=path)

    assert answer.returncode == 1
    assert "sudo apt-get install graphviz bubblewrap" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_root_gets_only_what_is_missing_installed(commands, tmp_path):
    path = commands(id="echo 0", apt_get=f'echo "$*" >> {tmp_path}/asked', dot="exit 0")
    answer = run("/bin/bash", "scripts/system_packages.sh", "dot=graphviz", "bwrap=bubblewrap", path=path)

    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "asked").read_text(encoding="utf-8").splitlines()[-1].endswith("bubblewrap")
    assert "graphviz" not in (tmp_path / "asked").read_text(encoding="utf-8")


def test_a_second_lab_keeps_answers_and_brings_what_is_new_whatever_cp_says_of_kept_files(commands, tmp_path):
    path = commands(jupyter="exit 0", cp='[[ "$*" == *-*n* ]] && exit 1\n/bin/cp "$@"')  # as GNU's cp 9.2 to 9.4
    for file in ("00_start/00 start.ipynb", "00_start/pictures/one.png", "00_start/AGENTS.md"):
        (tmp_path / "work/release" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work/release" / file).write_text("released")
    lab = tmp_path / "work/lab/00_start"
    lab.mkdir(parents=True)
    (lab / "00 start.ipynb").write_text("answered")
    (lab / "AGENTS.md").write_text("the rule of an earlier release")

    env = os.environ | {"PATH": f"{path}:{os.environ['PATH']}"}
    answer = subprocess.run(
        [ROOT / "scripts/lab.sh"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )

    assert answer.returncode == 0, answer.stderr
    assert (lab / "00 start.ipynb").read_text() == "answered"
    assert (lab / "pictures/one.png").read_text() == "released"
    assert (lab / "AGENTS.md").read_text() == "released"


def test_a_machine_without_debian_packages_goes_on_with_a_sentence(commands):
    answer = run("/bin/bash", "scripts/system_packages.sh", "dot=graphviz", path=commands(id="echo 1000"))

    assert answer.returncode == 0
    assert "graphviz" in answer.stderr


def test_a_python_that_is_too_old_is_refused_in_one_sentence(commands):
    path = commands(python3='[ "$1" = -V ] && echo "Python 3.9.2"; [ "$1" = -V ]')
    answer = run("/bin/bash", "scripts/install.sh", "unused", path=path)

    assert answer.returncode == 1
    assert answer.stderr.startswith("Python 3.11 or later is needed; 'python3' is Python 3.9.2.")


@pytest.mark.parametrize(
    ("named", "debian", "chosen"),
    [("another", "new", "another"), (None, "new", "debian"), (None, "old", "python3"), (None, None, "python3")],
)
def test_the_python_is_the_one_named_else_debians_else_that_on_the_path(commands, tmp_path, named, debian, chosen):
    asks = 'case "$*" in *version_info*) exit {status} ;; -V) echo "Python of {name}" ;; "-m venv "*) exit 1 ;; esac'
    scripts = {name: asks.format(status=0, name=name) for name in ("another", "python3")}
    path = commands(**scripts, debian=asks.format(status=int(debian == "old"), name="debian"), bash="exit 0")
    where = {"DEBIAN_PYTHON3": str(tmp_path / "debian")} if debian else {}
    answer = run("/bin/bash", "scripts/install.sh", "unused", path=path, PACKAGES="no", **where, **named_python(named))

    assert f", on Python of {chosen} " in answer.stdout


def named_python(name: str | None) -> dict[str, str]:
    """Return the variable that names a Python, as a person sets it or not."""
    return {} if name is None else {"PYTHON3": name}


# Stands in for python3: the index answers as told, and the environment it makes writes down what pip is asked for.
FAKE_PYTHON = """
case "$*" in
  *urlopen*) exit {answers} ;;
  "-m venv "*)
    /bin/mkdir -p "$3/bin"
    printf '#!/bin/bash\\necho "$*" >> {log}\\n' > "$3/bin/python"
    /bin/chmod +x "$3/bin/python" ;;
esac
"""


@pytest.mark.parametrize(
    ("has_gpu", "index_answers", "takes_cpu_builds"),
    [(False, True, True), (False, False, False), (True, True, False)],
)
def test_torch_comes_without_cuda_where_there_is_no_gpu(commands, tmp_path, has_gpu, index_answers, takes_cpu_builds):
    log, venv = tmp_path / "log", tmp_path / "venv"
    python = FAKE_PYTHON.format(answers=0 if index_answers else 1, log=log)
    path = commands(python3=python, touch='/bin/touch "$@"', **({"nvidia_smi": "exit 0"} if has_gpu else {}))
    answer = run("/bin/bash", "scripts/install.sh", str(venv), path=path, TORCH_CPU_INDEX="https://index.invalid/cpu")

    assert answer.returncode == 0, answer.stderr
    pip, course, compiled, checked = log.read_text(encoding="utf-8").splitlines()
    assert re.search(r" pip==[0-9.]+$", pip)
    assert ("--extra-index-url https://index.invalid/cpu" in course) == takes_cpu_builds
    assert "-c constraints.txt" in course
    assert compiled.startswith("-m compileall")
    assert checked == "-m pip check"
    assert (venv / ".installed").exists()


def test_extras_are_added_to_what_the_demonstration_needs(commands, tmp_path):
    log, venv = tmp_path / "log", tmp_path / "venv"
    path = commands(python3=FAKE_PYTHON.format(answers=1, log=log), touch='/bin/touch "$@"')
    asked = [run("/bin/bash", "scripts/install.sh", str(venv), *extras, path=path) for extras in ([], ["a", "b"])]

    assert [answer.returncode for answer in asked] == [0, 0], asked
    installed = [line.rsplit(" ", 1)[1] for line in log.read_text(encoding="utf-8").splitlines() if " -e " in line]
    assert installed == [".[notebook,dev]", ".[notebook,dev,a,b]"]


def installs(target: str, folder, *done: str) -> list[str]:
    """Return the lines with which `make TARGET` would install, where the files `done` lie in the environment."""
    folder.mkdir()
    for name in done:
        (folder / name).touch()
    planned = run("make", "--dry-run", target, f"VENV={folder}").stdout.splitlines()
    return [line.split("install.sh ")[1] for line in planned if "install.sh " in line]


def test_what_tests_need_is_installed_for_tests_alone(tmp_path):
    light, whole = f'"{tmp_path}/a"', f'"{tmp_path}/a" cluster'
    cases = {
        ("demo",): [light],
        ("test",): [whole],
        ("lint",): [whole],
        ("test", ".installed"): [whole],
        ("test", ".installed", ".installed-test"): [],
        ("demo", ".installed", ".installed-test"): [],
        ("release", ".installed"): [],
    }
    found = {}
    for case in cases:
        found[case] = installs(case[0], tmp_path / "a", *case[1:])
        shutil.rmtree(tmp_path / "a")

    assert found == cases


def test_a_machine_without_docker_is_told_so(commands):
    answer = run("/bin/bash", "scripts/image.sh", "student", path=commands(id="echo 0"))

    assert answer.returncode == 1
    assert "needs Docker" in answer.stderr


def test_plain_make_explains_every_target():
    explained = set(re.findall(r"^  make ([a-z-]+) +\S", run("make").stdout, re.MULTILINE))

    assert explained == PROMISED_TARGETS


def test_continuous_integration_types_what_a_reader_of_the_readme_types():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if line and not line.startswith("#")] == [
        "set -euo pipefail",
        'cd "$(dirname "$0")/.."',
        "exec make test",
    ]


def test_the_image_takes_any_base_with_python3():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")

    assert "\nARG BASE_IMAGE=python:3.11-slim-bookworm\n" in text
    assert {"student", "instructor"} <= set(re.findall(r"^FROM \S+ AS (\S+)", text, re.MULTILINE))
    assert re.search(r"(?<![\w/:.-])python -", text) is None, "plain Debian has python3, not python"
