"""The tree in the README is the tree on disk: what it shows exists, and no package or folder is missing from it."""

import re

from tests.architecture.source_tree import PACKAGES, ROOT, python_files, tracked_files

INDENT = 4


def tree_paths(readme: str) -> list[str]:
    """Return the paths in the first block of `readme` that is fenced as `tree`: a name a line, indented by four."""
    block = re.search(r"^```tree\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert block, "README.md has no block fenced as ```tree"
    parents: list[str] = []
    paths = []
    for line in block[1].splitlines():
        level = (len(line) - len(line.lstrip())) // INDENT
        parents = [*parents[:level], line.split()[0]]
        paths.append("".join(parents).removesuffix("/"))
    return paths


def top_level_names() -> set[str]:
    """Return what lies in the root folder, without the settings of tools that begin with a dot."""
    names = {name.split("/")[0] for name in tracked_files()}
    return {name for name in names if not name.startswith(".")}


def package_folders() -> set[str]:
    """Return the folder of each package."""
    return {str(path.parent.relative_to(ROOT)) for path in python_files(*PACKAGES) if path.name == "__init__.py"}


def differences(readme: str, on_disk: set[str], must_show: set[str]) -> list[str]:
    """Return what the tree of `readme` shows and `on_disk` lacks, and what it must show and does not."""
    shown = set(tree_paths(readme))
    return sorted(
        [f"not on disk: {path}" for path in shown - on_disk]
        + [f"not in the tree: {path}" for path in must_show - shown]
    )


def test_the_readmes_tree_is_the_tree_on_disk():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    files = set(tracked_files())
    folders = {"/".join(name.split("/")[:n]) for name in files for n in range(1, name.count("/") + 1)}

    assert differences(readme, files | folders, top_level_names() | package_folders()) == []


def test_the_check_sees_what_is_missing_and_what_is_invented():
    readme = "```tree\nMakefile      targets\nautograder/   grades\n    host/     trusted\n    ghost/    gone\n```\n"
    on_disk = {"Makefile", "autograder", "autograder/host", "autograder/worker"}

    assert differences(readme, on_disk, {"autograder", "autograder/worker"}) == [
        "not in the tree: autograder/worker",
        "not on disk: autograder/ghost",
    ]
