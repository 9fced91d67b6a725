"""What reads text or nested data of any size or depth stands at known places in the host, each with its bound."""

import ast
import functools
from fnmatch import fnmatch

import pytest

from tests.architecture.source_tree import ROOT, python_files
from tests.architecture.test_trust import TRUSTED, dotted, names_imported

# Functions that recurse into what they are given, or may take time squared.
READERS = {
    "ast.parse", "ast.unparse", "ast.dump", "ast.literal_eval", "ast.get_docstring", "ast.NodeVisitor",
    "ast.NodeTransformer", "copy.deepcopy", "json.load", "json.loads", "nbformat.read", "nbformat.reads",
    "nbformat.validate", "yaml.safe_load", "inspect.getsource",
}  # fmt: skip
# Modules of which all functions are such.
READING_MODULES = {
    "difflib", "textwrap", "pprint", "tokenize", "mistune", "pygments", "latex2mathml", "nh3", "bleach", "bs4", "lxml",
    "markdown", "html.parser", "xml.etree", "pickletools", "tomllib", "configparser", "csv", "zipfile", "tarfile",
}  # fmt: skip

# Where each of them is right: by what its input is bounded, or why no student wrote it.
ALLOWED = {
    # the doors
    ("autograder/host/source_text.py", "ast.parse"): "the door for source text: bounded characters and levels",
    ("autograder/host/source_text.py", "ast.unparse"): "a tree that came through this door",
    ("autograder/host/source_text.py", "ast.dump"): "the same, and a text that was written of it",
    ("autograder/classroom/submission.py", "json.loads"): "the door for notebooks: bounded bytes and entries",
    ("autograder/protocol/messages.py", "json.loads"): "the door for replies: bounded bytes, depth and numbers",
    ("autograder/classroom/pages/typesetting.py", "*"): "runs in a limited process only, on text of bounded length",
    ("autograder/classroom/pages/limited_process.py", "json.loads"): "its requests and replies are lists of texts",
    # behind a door
    ("autograder/host/grading.py", "ast.parse"): "a constant text of ours",
    ("autograder/host/grading.py", "ast.dump"): "a part of a tree that came through the door for source text",
    ("autograder/host/artifacts/torchscript_archive.py", "zipfile"): "bytes and files are bounded as they are read",
    ("autograder/host/artifacts/torchscript_pickles.py", "pickletools"): "reads opcodes one by one, up to a limit",
    ("autograder/classroom/platforms/upload_archive.py", "zipfile"): "files and bytes are bounded as they are read",
    ("autograder/exercises/cell_text.py", "textwrap"): "`dedent`, which is linear, on at most 200,000 characters",
    ("autograder/host/report/exercise_text.py", "textwrap"): "a message of at most 2,000 characters",
    ("autograder/classroom/nbgrader/grade.py", "json.loads"): "a notebook that this grader rebuilt within limits",
    # texts and objects of ours
    ("autograder/host/records.py", "json.loads"): "a line of the journal, which this grader wrote",
    ("autograder/classroom/nbgrader/wall.py", "json.loads"): "a step that this grader asks its own child to do",
    ("autograder/classroom/trials/board.py", "json.loads"): "a line of the board's own file, which this grader wrote",
    ("autograder/classroom/notes.py", "json.loads"): "a file in the quarantine's folder that this grader wrote",
    ("autograder/host/setup_imports.py", "*"): "a set-up cell of the course",
    ("autograder/practice/*", "json.loads"): "a student's own file, read in the student's own process",
    ("autograder/protocol/orders.py", "json.loads"): "the host's orders, read by a worker before any student's code",
    ("autograder/host/sandbox/*", "json.loads"): "lines of our probes, of bubblewrap and of our own orders",
    ("autograder/host/sandbox/probe.py", "textwrap"): "a line of a probe",
    ("autograder/host/kinds/*", "inspect.getsource"): "the text of a module of ours",
    ("autograder/host/checks/*", "copy.deepcopy"): "a program of an exercise",
    ("autograder/host/clock/contest.py", "copy.deepcopy"): "a program of an exercise",
    ("autograder/exercises/hidden/answer_files.py", "*"): "our own answers",
    ("autograder/exercises/quality/*", "*"): "our own answers",
    ("autograder/exercises/questions.py", "json.loads"): "questions with answers, which this grader drew",
    ("autograder/exercises/registry.py", "difflib"): "an id of an exercise that somebody typed",
    ("autograder/classroom/nbgrader/leaks.py", "json.loads"): "a notebook of the course",
    ("autograder/classroom/nbgrader/markers.py", "difflib"): "a line of a notebook of the course",
    ("autograder/classroom/nbgrader/release.py", "*"): "a notebook of the course",
    ("autograder/classroom/nbgrader/repair.py", "nbformat.read"): "a released notebook of the course",
    ("autograder/classroom/new_exercise.py", "json.loads"): "a notebook of the course",
    ("autograder/classroom/nbgrader/course.py", "copy.deepcopy"): "nbgrader's configuration of the course",
    ("autograder/classroom/nbgrader/dropped.py", "json.loads"): "a file that this grader wrote",
    ("autograder/classroom/term/course_texts.py", "json.loads"): "a notebook of the course",
    ("autograder/classroom/term/due_dates.py", "json.loads"): "a file that this grader wrote",
    ("autograder/course_settings.py", "tomllib"): "the course's file; a notebook reads it in the student's own process",
    ("autograder/course_settings.py", "difflib"): "a name in the course's file, of bounded length",
    ("autograder/classroom/nbgrader/extensions.py", "json.loads"): "a file that this grader wrote",
    ("autograder/classroom/nbgrader/left_out.py", "json.loads"): "a file that this grader wrote",
    ("autograder/classroom/nbgrader/releases.py", "json.loads"): "a file that this grader wrote",
    ("autograder/classroom/roster.py", "csv"): "the instructor's list of students",
    ("autograder/classroom/*", "csv"): "a file that is written",
}  # fmt: skip


def reading_names(source: str) -> set[str]:
    """Return the readers that `source` names or imports."""
    nodes = list(ast.walk(ast.parse(source)))
    imported = {name for node in nodes for name in names_imported(node)}
    modules = {module for module in READING_MODULES for name in imported if f"{name}.".startswith(f"{module}.")}
    named = {dotted(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)} | imported
    return modules | (named & READERS)


@functools.cache
def used_in_the_host() -> set[tuple[str, str]]:
    """Return each pair of a host file and a reader in it."""
    files = [*python_files(*(f"autograder/{part}" for part in TRUSTED)), ROOT / "autograder/course_settings.py"]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    return {(file, name) for file, text in texts.items() for name in reading_names(text)}


def fits(use: tuple[str, str], allowed: tuple[str, str]) -> bool:
    """Tell whether a use is the allowed one."""
    return fnmatch(use[0], allowed[0]) and fnmatch(use[1], allowed[1])


def test_the_host_reads_texts_and_nested_data_at_known_places_only():
    assert sorted(use for use in used_in_the_host() if not any(fits(use, allowed) for allowed in ALLOWED)) == []


def test_every_known_place_is_still_one():
    uses = used_in_the_host()

    assert [allowed for allowed in ALLOWED if not any(fits(use, allowed) for use in uses)] == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import ast\nast.unparse(tree)", "ast.unparse"),
        ("from ast import unparse as harmless", "ast.unparse"),
        ("from copy import deepcopy", "copy.deepcopy"),
        ("import difflib\ndifflib.ndiff(a, b)", "difflib"),
        ("from pygments.lexers import PythonLexer", "pygments"),
        ("def f(text):\n    import json\n    return json.loads(text)", "json.loads"),
    ],
)
def test_the_check_sees_what_may_recurse_or_take_time_squared(source, name):
    assert name in reading_names(source)


def test_the_check_leaves_writing_alone():
    assert reading_names("import json, copy, ast\njson.dumps(x)\ncopy.copy(x)\nast.walk(tree)") == set()
