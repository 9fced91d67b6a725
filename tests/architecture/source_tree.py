"""Read the project as source: its files, what each imports, how long its functions are.

Nothing is imported, so a module that could not even start is still judged.
"""

import ast
import functools
import subprocess
from collections import deque
from collections.abc import Iterator, Set
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("course_lib", "autograder")
INSIDE = ("body", "handlers", "orelse", "finalbody", "cases")  # fields of a statement with others in them
# Where Python of our own lies. What students hand in (tests/submissions) is bad on purpose and never read here.
CODE = (*PACKAGES, "demo", "scripts", "benchmarks", "tests")


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below `folders`, without what students handed in."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if "submissions" not in path.relative_to(ROOT).parts)


def tracked_files() -> list[str]:
    """Return every file git tracks or would track, as paths relative to the root; without git, every file."""
    git = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    answer = subprocess.run(git, capture_output=True, text=True, check=False)
    if answer.returncode == 0:
        return sorted({line for line in answer.stdout.splitlines() if (ROOT / line).is_file()})
    hidden_or_made = {".venv", "work", "__pycache__", "build", "dist"}
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return sorted(str(path) for path in paths if not hidden_or_made & set(path.parts))


def module_name(path: Path) -> str:
    """Return the dotted name of a file: `course_lib/graph/__init__.py` is `course_lib.graph`."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements(source: str) -> Iterator[ast.AST]:
    """Yield the module of `source` and every statement in it, which are few of its nodes: expressions hold none."""
    waiting: deque[ast.AST] = deque([ast.parse(source)])
    while waiting:
        node = waiting.popleft()
        for field in INSIDE:
            waiting.extend(getattr(node, field, ()))
        yield node


@functools.cache
def imported_modules(source: str, *, package: str) -> Set[str]:
    """Return the dotted names that `source` imports anywhere in it; `package` resolves relative imports.

    `from a import b` counts as `a.b`, because b may be a module.
    """
    names: set[str] = set()
    for node in statements(source):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return frozenset(names)


def imports_of(path: Path) -> Set[str]:
    """Return the dotted names that the file at `path` imports."""
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return imported_modules(path.read_text(encoding="utf-8"), package=package)


def function_lengths(source: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of lines of each function, docstring included, decorators not."""
    for node in statements(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1
