"""A module has a name of its own, a folder has few files, and ten files of one prefix are a folder."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from autograder.exercises.lessons import LESSONS
from tests.architecture.source_tree import CODE, PACKAGES, ROOT, python_files

FOLDER_FILES = 21
PREFIXED_FILES = 9
# Folders whose files correspond one to one: there the same name says which belong together.
MIRRORS = (
    {"course_lib/kernels", "course_lib/fusion/passes"},
    {"autograder/worker/kinds", "autograder/host/kinds"},
    *({f"autograder/exercises/{lesson}", f"autograder/exercises/hidden/{lesson}"} for lesson in LESSONS.values()),
)
# Answers of known marks are texts and no modules; their names are the exercises'.
TEXTS = "autograder/exercises/hidden/answers"


def shared_names(files: Iterable[str]) -> set[str]:
    """Return the names that modules in different folders have, where the folders do not mirror each other."""
    folders: dict[str, set[str]] = defaultdict(set)
    for file in map(Path, files):
        if not file.stem.startswith("__") and not str(file).startswith(TEXTS):
            folders[file.stem].add(str(file.parent))
    return {
        name for name, places in folders.items() if len(places) > 1 and not any(places <= mirror for mirror in MIRRORS)
    }


def full_folders(files: Iterable[str]) -> set[str]:
    """Return the folders that have too many modules of their own."""
    counted = Counter(str(Path(file).parent) for file in files if not Path(file).stem.startswith("__"))
    return {folder for folder, count in counted.items() if count > FOLDER_FILES}


def prefixes(files: Iterable[str]) -> set[str]:
    """Return the prefixes that so many modules of one folder have that they should be a folder."""
    counted = Counter(
        f"{Path(file).parent}/{Path(file).stem.partition('_')[0]}"
        for file in files
        if not Path(file).stem.startswith("_") and not Path(file).stem[0].isdigit()
    )
    return {prefix for prefix, count in counted.items() if count > PREFIXED_FILES}


def names_of(*folders: str) -> list[str]:
    """Return the paths of the Python files below folders, relative to the root."""
    return [path.relative_to(ROOT).as_posix() for path in python_files(*folders)]


def test_a_name_of_a_module_occurs_once_in_a_package():
    assert {package: shared_names(names_of(package)) for package in PACKAGES} == {
        package: set() for package in PACKAGES
    }


def test_a_folder_has_few_files():
    assert full_folders(names_of(*(folder for folder in CODE if folder != "tests"))) == set()


def test_ten_files_of_one_prefix_are_a_folder():
    assert prefixes(names_of(*PACKAGES)) == set()


def test_the_check_sees_a_name_that_occurs_twice_but_for_mirrors():
    twice = ["a/values.py", "a/b/values.py", "a/b/__init__.py", "a/__init__.py"]
    mirrored = ["course_lib/kernels/bias_gelu.py", "course_lib/fusion/passes/bias_gelu.py"]

    assert shared_names([*twice, *mirrored]) == {"values"}
    assert shared_names([*mirrored, "course_lib/graph/bias_gelu.py"]) == {"bias_gelu"}


def test_the_check_sees_a_full_folder_and_a_missing_one():
    files = [f"a/part_{number}.py" for number in range(FOLDER_FILES + 1)]

    assert full_folders(files) == {"a"}
    assert prefixes(files) == {"a/part"}
    assert full_folders(files[1:]) == set()
