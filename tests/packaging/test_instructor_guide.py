"""Every command of the guide for instructors is run, in its order, on a class of three; its settings exist."""

import csv
import json
import os
import re
import shlex
import sys
import zipfile
from pathlib import Path

import pytest
from traitlets.config import Config

from autograder.classroom.cli import _parser
from autograder.classroom.nbgrader.course import open_course
from autograder.classroom.nbgrader.outside_kernel import GradeOutsideKernel
from demo.hand_in import submit
from tests.architecture.source_tree import ROOT
from tests.autograder.host.forked_command import fork_command

GUIDE = (ROOT / "docs" / "instructor.md").read_text(encoding="utf-8")
NAME = "00_start_here"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
COMMANDS = [line for kind, block in BLOCKS if kind == "bash" for line in block.splitlines()]
REHEARSAL = COMMANDS[-1]  # a test of its own runs it


@pytest.fixture
def course_folder(tmp_path, monkeypatch):
    """Make a folder that is the checkout to whoever types there, and keep what is made beside it."""
    folder = tmp_path / "course"
    folder.mkdir()
    (folder / "nbgrader_config.py").symlink_to(ROOT / "nbgrader_config.py")
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "nbgrader", "autograder"):
        (folder / ".venv" / "bin" / name).symlink_to(Path(sys.executable).parent / name)
    (folder / "roster.csv").write_text("id,lms_user_id\nby_exchange,1\nby_upload,2\nabsent,3\n")
    monkeypatch.setenv("COURSE_WORK", str(folder / "work"))
    monkeypatch.delenv("COURSE_EXCHANGE", raising=False)
    return folder


def hand_in(folder: Path, command: str) -> None:
    """Let students do what they do before the instructor's `command`."""
    released = folder / "work" / "release" / NAME / f"{NAME}.ipynb"
    if " collect " in command:
        home = folder / "homes" / "by_exchange"
        (home / NAME).mkdir(parents=True)
        (home / NAME / released.name).write_bytes(released.read_bytes())
        submit(open_course(folder), home, NAME)
    if " zip_collect " in command:
        archive = folder / "work" / "downloaded" / NAME / "archive"
        archive.mkdir(parents=True)
        with zipfile.ZipFile(archive / "submissions.zip", "w") as opened:
            opened.write(released, f"byupload_2_77_{NAME}.ipynb")


def allowed(config: str) -> Config:
    """Run a piece of configuration as traitlets does."""
    settings = Config()
    exec(config, {"get_config": lambda: settings})
    return settings


@pytest.mark.slow
def test_every_command_of_the_guide_does_what_it_says(course_folder):
    said, environment = {}, {**os.environ, "PATH": os.defpath}
    for command in COMMANDS[:-1]:
        hand_in(course_folder, command)
        status, said[command] = fork_command(shlex.split(command), course_folder, environment).finish()
        assert status == 0, f"{command}\n{said[command]}"

    text = "\n".join(said.values())
    assert "sandbox level" in text or "level" in said[COMMANDS[0]]
    assert "1 hand-ins collected" in text
    assert f"give back  nbgrader release_feedback {NAME}" in text
    work = course_folder / "work"
    with (work / "grades.csv").open() as file:
        assert {row["student_id"] for row in csv.DictReader(file)} == {"by_exchange", "by_upload", "absent"}
    for made in re.findall(r"`(work/[\w./]+\.\w+)`", GUIDE):
        assert (course_folder / made.replace("STUDENT", "by_upload")).is_file(), made
    assert len(list((work / "exchange" / "fusion-course" / "feedback").glob("*.html"))) == 1


def test_the_rehearsal_is_the_command_that_has_a_test_of_its_own():
    assert REHEARSAL.split()[:4] == [".venv/bin/python", "-m", "demo", "afternoon"]


def test_what_a_student_configures_are_settings_of_nbgrader():
    (config,) = [block for kind, block in BLOCKS if kind == "python"]

    settings = allowed(config)
    assert settings.CourseDirectory.course_id == "fusion-course"
    assert settings.Exchange.root


def test_every_setting_and_target_that_the_guide_names_exists():
    config = (ROOT / "nbgrader_config.py").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert [name for name in re.findall(r"`(c\.\w+\.\w+)`", GUIDE) if name not in config] == []
    assert [name for name in re.findall(r"`make ([a-z-]+)`", GUIDE) if f"\n{name}:" not in makefile] == []
    assert "COURSE_EXCHANGE" in config


def test_every_link_of_the_guide_exists():
    assert [path for path in re.findall(r"\]\(([^)#:]+)\)", GUIDE) if not (ROOT / "docs" / path).exists()] == []
    assert "docs/instructor.md" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_on_gpus_names_commands_settings_and_options_that_exist():
    page = (ROOT / "docs" / "grading_on_a_gpu.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\.venv/bin/autograder (.+)$", page, re.MULTILINE)

    assert len(lines) >= 3
    for line in lines:
        assert _parser().parse_args(shlex.split(line)).run
    named = set(re.findall(r"GradeOutsideKernel\.(\w+)", page))
    assert {name for name in named if GradeOutsideKernel().has_trait(name)} == named == {"device"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [name for name in re.findall(r"`make ([a-z-]+)`", page) if f"\n{name}:" not in makefile] == []
    assert "(grading_on_a_gpu.md)" in GUIDE


def points_a_minute(notebook: Path) -> float:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    tasks = [text for text in texts if text.startswith("## Exercise: ")]
    minutes = [int(number) for text in tasks for number in re.findall(r"^★+.*?\b(\d+) minutes", text, re.MULTILINE)]
    return sum(cell["metadata"].get("nbgrader", {}).get("points", 0) for cell in cells) / sum(minutes)


def test_the_guide_says_how_many_points_a_minute_of_a_task_gives():
    later = sorted((ROOT / "notebooks").glob("1[0-7]_*/*.ipynb"))
    *others, capstone = map(points_a_minute, later)
    said = f"{min(others):.2f} to {max(others):.2f} points a minute, and the capstone gives {capstone:.2f}."
    assert said in " ".join(GUIDE.split())
