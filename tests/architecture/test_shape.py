"""How large files and functions are, and that every `__init__.py` is a list of what its package offers."""

import ast
import importlib
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture.source_tree import CODE, PACKAGES, ROOT, function_lengths, module_name, python_files

FILE_LINES = 400
FUNCTION_LINES = 40
MEDIAN_FUNCTION_LINES = 20
UNTYPED_DICTS = 20  # in the grader: a dict of anything has a name or a class, but where other packages want one
VAGUE_NAMES = {"utils", "util", "common", "misc", "helpers", "helper"}

INIT_FILES = [path for path in python_files(*PACKAGES) if path.name == "__init__.py"]


def long_functions(source: str) -> list[str]:
    """Return a line for each function of `source` that is too long to be read at once."""
    return [f"{name}: {lines} lines" for name, lines in function_lengths(source) if lines > FUNCTION_LINES]


def complaints_about_init(source: str) -> list[str]:
    """Return what is wrong with an `__init__.py`: it has a docstring, explicit imports and a sorted `__all__`."""
    tree = ast.parse(source)
    docstring, body = ast.get_docstring(tree), tree.body[1:]
    imports = [node for node in body if isinstance(node, ast.ImportFrom)]
    names = sorted(
        alias.asname or alias.name for node in imports for alias in node.names if node.module != "__future__"
    )
    logic = [node for node in body if not isinstance(node, ast.ImportFrom) and not is_all(node)]
    listed = [ast.literal_eval(node.value) for node in body if isinstance(node, ast.Assign) and is_all(node)]
    exported = listed[0] if listed else []
    found = {
        "no docstring": not docstring,
        "imports *": "*" in names,
        f"logic in line {logic[0].lineno if logic else 0}": bool(logic),
        f"__all__ is not sorted: {exported}": list(exported) != sorted(exported),
        f"imported and not in __all__: {sorted(set(names) - set(exported))}": bool(set(names) - set(exported)),
        f"in __all__ and not imported: {sorted(set(exported) - set(names))}": bool(set(exported) - set(names)),
    }
    return [complaint for complaint, wrong in found.items() if wrong]


def is_all(node: ast.stmt) -> bool:
    """Tell whether `node` assigns `__all__`."""
    return isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets)


def complaints_about_file(path: Path, source: str) -> list[str]:
    """Return what keeps a file from being read top to bottom."""
    lines = len(source.splitlines())
    vague = [f"the name {path.stem} says nothing"] if path.stem in VAGUE_NAMES else []
    return vague + ([f"{lines} lines"] if lines > FILE_LINES else []) + long_functions(source)


def each(paths: list[Path], complaints: Callable[[Path, str], list[str]]) -> dict[str, list[str]]:
    """Return the complaints about each of `paths` of which there are any."""
    found = {path.relative_to(ROOT).as_posix(): complaints(path, path.read_text(encoding="utf-8")) for path in paths}
    return {name: some for name, some in found.items() if some}


def test_every_file_is_short_enough_to_read_top_to_bottom():
    assert each(python_files(*CODE), complaints_about_file) == {}


def test_the_median_function_fits_half_a_screen():
    lengths = [n for path in python_files(*PACKAGES) for _, n in function_lengths(path.read_text(encoding="utf-8"))]

    assert statistics.median(lengths) < MEDIAN_FUNCTION_LINES


def test_dicts_of_anything_are_few_in_the_grader():
    sources = [path.read_text(encoding="utf-8") for path in python_files("autograder")]

    assert 0 < sum(source.count("dict[str, Any]") for source in sources) < UNTYPED_DICTS


def test_an_init_file_is_the_list_of_what_the_package_offers():
    assert INIT_FILES
    assert each(INIT_FILES, lambda path, source: complaints_about_init(source)) == {}


def test_everything_a_package_lists_exists():
    def missing(path: Path, source: str) -> list[str]:
        package = importlib.import_module(module_name(path))
        return [name for name in getattr(package, "__all__", []) if not hasattr(package, name)]

    assert each(INIT_FILES, missing) == {}


def test_the_check_sees_what_is_too_long_and_a_vague_name():
    function = "def f():\n" + "    x = 1\n" * FUNCTION_LINES
    found = complaints_about_file(Path("misc.py"), function + "y = 2\n" * FILE_LINES)

    assert found == ["the name misc says nothing", "441 lines", "f: 41 lines"]


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("from a import b\n__all__ = ['b']", "no docstring"),
        ("'''Doc.'''\nfrom a import *", "imports *"),
        ("'''Doc.'''\nimport os\nx = os.getcwd()", "logic in line 2"),
        ("'''Doc.'''\nfrom a import b, c\n__all__ = ['c', 'b']", "__all__ is not sorted: ['c', 'b']"),
        ("'''Doc.'''\nfrom a import b", "imported and not in __all__: ['b']"),
        ("'''Doc.'''\n__all__ = ['b']", "in __all__ and not imported: ['b']"),
    ],
)
def test_the_check_sees_what_is_wrong_with_an_init_file(source, complaint):
    assert complaint in complaints_about_init(source)
