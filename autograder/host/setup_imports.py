"""The names that a notebook's set-up cell gives to an answer, and which of them are there when it is graded.

The worker gets every import of the set-up cell that the answer uses. It lacks only what lies in a package that the
exercise masks, and the grader itself. An import that the answer does not name is left out, because importing
`transformers`, for example, takes seconds. Only text of the course is parsed here; a student's text is only divided
into words.
"""

import ast
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.host.source_text import tree_of

NEVER_THERE = ("autograder",)
NEEDS_TORCH = ("course_lib",)  # what is not there either where torch is masked
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Import:
    """One name that a set-up cell binds, as an import statement of its own."""

    name: str
    module: str  # with the imported name: "math", "course_lib.graph.cost"
    line: str

    def hidden_by(self, masked: Sequence[str]) -> str | None:
        """Return the package, of `masked` or the grader's, that keeps this name from the worker; else None."""
        absent = (*masked, *NEVER_THERE, *(NEEDS_TORCH if "torch" in masked else ()))
        return next((package for package in absent if f"{self.module}.".startswith(f"{package}.")), None)


def imports(setup: str) -> list[Import]:
    """Return the names that a set-up cell imports, in order.

    >>> [found.line for found in imports("from torch import fx, nn\\ntorch.manual_seed(0)")]
    ['from torch import fx', 'from torch import nn']
    """
    found: list[Import] = []
    for statement in tree_of(setup).body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                bound = alias.asname or alias.name.partition(".")[0]
                found.append(Import(bound, alias.name, ast.unparse(ast.Import([alias]))))
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                module = f"{statement.module}.{alias.name}"
                line = ast.unparse(ast.ImportFrom(statement.module, [alias], 0))
                found.append(Import(alias.asname or alias.name, module, line))
    return found


def used_setup(setup: str, masked: Sequence[str], answers: Iterable[str]) -> str:
    """Return those lines of a set-up cell that bind a name which occurs in one of `answers`.

    >>> used_setup("import math, re", (), ["def area(r): return math.pi * r**2"])
    'import math\\n'
    """
    words = {word for text in answers for word in _WORD.findall(unicodedata.normalize("NFKC", text))}
    there = (each for each in imports(setup) if each.name in words and each.hidden_by(masked) is None)
    return "".join(f"{each.line}\n" for each in there)


def absent_names(setup: str, masked: Sequence[str]) -> dict[str, str]:
    """Return the names of a set-up cell that the worker does not get, each with the package that is masked.

    >>> absent_names("from course_lib.graph import cost", ["course_lib.graph"])
    {'cost': 'course_lib.graph'}
    """
    hidden = ((each.name, each.hidden_by(masked)) for each in imports(setup))
    return {name: package for name, package in hidden if package is not None}
