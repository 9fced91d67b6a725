"""Every file, folder, module and name of ours that a text or a docstring names exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source_tree import CODE, ROOT, python_files, statements, tracked_files

# What the two texts on adding something let the reader write, and where commands write.
TO_BE_WRITTEN = ("count_nodes", "reciprocal_sqrt", "work/")
# A word in capitals stands for any name.
PLACEHOLDER = re.compile(r"(?:^|/)(?!README|ARCHITECTURE)[A-Z]+(?:\.|/|$)")
SETTINGS = ("Makefile", "Dockerfile", "pyproject.toml", "nbgrader_config.py", ".sh", ".yml", ".json")
FILE_NAME = re.compile(r"[\w-]+\.(?:py|ipynb|md|sh|css|toml|svg|txt)")
DOTTED = re.compile(rf"(?<![\w./])(?:{'|'.join(CODE)})(?:\.[A-Za-z_]\w*)+(?![\w/]|\.\w)")
PATH = re.compile(r"\.?[\w.-]+(?:/[\w.-]+)*/?")


def code_in(markdown: str) -> Iterator[str]:
    """Yield the words of a text that are marked as code, in a line or in a block; the tree has a test of its own."""
    for kind, block, span in re.findall(r"^```(.*?)\n(.*?)^```|`([^`\n]+)`", markdown, re.MULTILINE | re.DOTALL):
        yield from "" if kind == "tree" else (block or span).split()


def missing_in(text: str, code: Iterator[str], folder: Path) -> list[str]:
    """Return what `text` names and nobody has: dotted names anywhere, paths among the words of `code`."""
    dotted = [name for name in DOTTED.findall(text) if not FILE_NAME.fullmatch(name) and not exists(name)]
    paths = [word for word in code if is_path(word) and not is_there(word, folder)]
    return [name for name in [*dotted, *paths] if not any(word in name for word in TO_BE_WRITTEN)]


def is_path(word: str) -> bool:
    """Tell whether a word can only be a path of ours: it begins with a folder of ours, or ends like one or a file."""
    if not PATH.fullmatch(word) or PLACEHOLDER.search(word):
        return False
    first, last = word.split("/")[0], word.split("/")[-1]
    return bool(FILE_NAME.fullmatch(last)) or ("/" in word and (first in top_folders() or not last))


def is_there(word: str, folder: Path) -> bool:
    """Tell whether a path exists, seen from the root, a text's folder or the one above; a file alone, anywhere."""
    if any((place / word).exists() for place in (ROOT, folder, folder.parent)):
        return True
    return "/" not in word and word in {Path(name).name for name in tracked_files()}


def broken_links(text: str, folder: Path) -> list[str]:
    """Return the links of a text in `folder` that lead to no file, or to no heading of it."""
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, heading = target.partition("#")
        place = folder / path
        if ":" in target:  # of another site
            continue
        there = text if not path else place.read_text(encoding="utf-8") if place.is_file() else ""
        if not place.exists() or (heading and heading not in headings(there)):
            found.append(target)
    return found


def headings(text: str) -> set[str]:
    """Return the headings of a text as a link writes them."""
    lines = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in lines}


@cache
def top_folders() -> set[str]:
    """Return the folders in the root."""
    return {name.split("/")[0] for name in tracked_files() if "/" in name}


def exists(dotted: str) -> bool:
    """Tell whether a dotted name is a module, a package, or what a module of ours defines or imports."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:length])
        module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if module.is_file() or (place.is_dir() and length == len(parts)):
            return length == len(parts) or parts[length] in names_in(module)
    return False


@cache
def names_in(module: Path) -> set[str]:
    """Return the names that a module binds outside of functions."""
    names: set[str] = set()
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def docstrings(path: Path) -> str:
    """Return all docstrings of a file, and the strings below its names."""
    found = statements(path.read_text(encoding="utf-8"))
    texts = [node.value for node in found if isinstance(node, ast.Expr)]
    return "\n".join(text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str))


def test_a_text_names_only_what_exists() -> None:
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in tracked_files() if name.endswith(".md")}
    found = {name: missing_in(text, code_in(text), (ROOT / name).parent) for name, text in texts.items()}

    assert "ARCHITECTURE.md" in texts
    assert {name: missing for name, missing in found.items() if missing} == {}


def test_every_link_of_a_text_leads_somewhere() -> None:
    texts = [ROOT / name for name in tracked_files() if name.endswith(".md")]
    found = {path: broken_links(path.read_text(encoding="utf-8"), path.parent) for path in texts}

    assert {path.relative_to(ROOT).as_posix(): links for path, links in found.items() if links} == {}


@pytest.mark.parametrize("link", ["nowhere.md", "README.md#no-such-heading", "#elsewhere"])
def test_the_check_sees_a_link_that_leads_nowhere(link: str) -> None:
    assert broken_links(f"# Here\n[a](README.md#two-commands) [b](#here) [c]({link})", ROOT) == [link]


def test_a_docstring_names_only_what_exists() -> None:
    texts = {path: docstrings(path) for path in python_files(*(set(CODE) - {"tests"}))}
    found = {path: missing_in(text, code_in(text), path.parent) for path, text in texts.items()}

    assert {path.relative_to(ROOT).as_posix(): missing for path, missing in found.items() if missing} == {}


def test_a_setting_names_only_what_exists() -> None:
    names = [name for name in tracked_files() if name.endswith(SETTINGS) and not name.startswith("tests/")]
    found = {name: missing_in((ROOT / name).read_text(encoding="utf-8"), iter(()), ROOT) for name in names}

    assert {"Makefile", "pyproject.toml", "scripts/install.sh"} <= set(names)
    assert {name: missing for name, missing in found.items() if missing} == {}


@pytest.mark.parametrize(
    "text",
    [
        "`autograder/host/judge_of_nothing.py`",
        "the folder `autograder/kit/`",
        "`nowhere.py`",
        "`kit/standard.py`",
        "the folder `kit/`",
        "python -m autograder.kit",
        "`autograder.host.judge.nobody`",
        "```\n.venv/bin/python -m benchmarks.nothing\n```",
    ],
)
def test_the_check_sees_what_is_not_there(text: str) -> None:
    assert missing_in(text, code_in(text), ROOT) != []


def test_the_check_takes_what_is_there() -> None:
    text = "`autograder/host/judge.py` `judge.py` `host/` autograder.host.judge.judge `course_lib.fusion` `a/b` `x.y`"

    assert missing_in(text, code_in(text), ROOT / "autograder") == []
