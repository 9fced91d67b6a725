"""Check names and paths in a graph written as data, and raise errors that name the place.

Names matter for safety: torch.fx turns a graph into Python source and runs that, and names stand in it as they are.
"""

import builtins
import functools
import keyword
import re
from typing import NoReturn

import torch

from course_lib.errors import GraphError

MAX_NAME = 200  # characters
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def refuse(where: str, problem: str) -> NoReturn:
    """Raise `GraphError` with a sentence that begins with the place: a node, a module, a tensor."""
    raise GraphError(f"{where}: {problem}.")


def shown(value: object) -> str:
    """Return a short description of any value, however large or strange it is."""
    if type(value) is str:
        return repr(value[:60]) if len(value) <= 60 else repr(value[:60]) + "…"
    return f"a {type(value).__name__}"


def reason(error: Exception) -> str:
    """Return the type and the message of an error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def check_name(name: object, where: str) -> str:
    """Return `name` if it is a plain Python name: ASCII, no keyword, no dunder, not `self`."""
    if type(name) is not str or len(name) > MAX_NAME or not _IDENTIFIER.fullmatch(name):
        refuse(where, f"{shown(name)} is no name; a name is made of letters, digits and underscores")
    if keyword.iskeyword(name) or name.startswith("__") or name.endswith("__") or name == "self":
        refuse(
            where,
            f"the name {shown(name)} is reserved; choose one that is neither a keyword nor a dunder",
        )
    return name


def check_path(path: object, where: str) -> str:
    """Return `path` if it is a dotted path of plain names and numbers that hides nothing a module has."""
    if type(path) is not str or not path or len(path) > MAX_NAME:
        refuse(where, f"{shown(path)} is no path; a path is names joined by dots, such as 'layer.0.weight'")
    for part in path.split("."):
        if part.isascii() and part.isdecimal():
            continue
        check_name(part, where)
        if part in _module_attributes():
            refuse(where, f"the path {shown(path)} uses {part!r}, which every module already has; rename it")
    return path


@functools.cache
def _module_attributes() -> frozenset[str]:
    module = torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph())
    return frozenset({*dir(module), *vars(module), *dir(builtins.object)})
