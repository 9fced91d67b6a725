"""Write the names, paths and arguments of nodes as JSON values, and read and check them.

None, booleans, finite numbers, strings and lists are written unchanged. Any other value is an object with one key
that names its type: {"node": name}, {"tuple": [...]}, {"dict": {...}}, {"slice": [start, stop, step]}, {"dtype":
"float32"}, {"float": "nan"}, {"ellipsis": true}.

Names must be safe: torch.fx turns a graph into Python source with these names unchanged, and executes it.
"""

import builtins
import functools
import keyword
import math
import re
from collections.abc import Mapping
from typing import NoReturn

import torch

from course_lib.errors import GraphError
from course_lib.graph.data.targets import DTYPES

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
    """Return `path` if it is a dotted path of plain names and numbers that hides no attribute of a module."""
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


MAX_DEPTH = 20
MAX_VALUES = 200_000  # in all arguments of a graph together
MAX_TEXT = 10_000  # characters
MAX_WHOLE = 2**63  # integers are below this, as in a tensor
ALLOWED = "None, bool, int, float, str, tuple, list, dict, slice, Ellipsis, dtype and the results of earlier nodes"
_TAGS = ("node", "tuple", "dict", "slice", "dtype", "float", "ellipsis")
_SPECIAL_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def write_value(value: object, where: str, depth: int = 0) -> object:
    """Return one argument of a node as a JSON value; raise `GraphError` naming `where` for anything not allowed."""
    _check_depth(depth, where)
    if isinstance(value, torch.fx.Node):
        return {"node": value.name}
    if value is Ellipsis:
        return {"ellipsis": True}
    if type(value) is float and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or type(value) in (bool, int, float, str):
        return _plain(value, where)
    if isinstance(value, torch.dtype) and value in _DTYPE_NAMES:
        return {"dtype": _DTYPE_NAMES[value]}
    if type(value) is slice:
        return {"slice": [write_value(part, where, depth + 1) for part in (value.start, value.stop, value.step)]}
    if type(value) in (tuple, torch.Size):
        return {"tuple": [write_value(part, where, depth + 1) for part in value]}  # type: ignore[attr-defined]
    if isinstance(value, list):  # torch.fx keeps lists and dicts as subclasses that refuse changes
        return [write_value(part, where, depth + 1) for part in value]
    if isinstance(value, dict):
        return {"dict": {_key(key, where): write_value(part, where, depth + 1) for key, part in value.items()}}
    return refuse(where, f"an argument is {shown(value)}, which cannot be written as data; allowed are {ALLOWED}")


class ValueReader:
    """Read the arguments of the nodes of one graph, with a limit on their total number."""

    def __init__(self, nodes: Mapping[str, torch.fx.Node]) -> None:
        """Keep `nodes`, the mapping of the nodes built so far; the caller adds each new node to it."""
        self._nodes = nodes
        self._count = 0

    def read(self, value: object, where: str, depth: int = 0) -> object:
        """Return the Python value that a JSON value stands for; raise `GraphError` naming `where` if there is none."""
        _check_depth(depth, where)
        self._count += 1
        if self._count > MAX_VALUES:
            refuse(where, f"the arguments of this graph are more than {MAX_VALUES} values; make the graph smaller")
        if type(value) is list:
            return [self.read(part, where, depth + 1) for part in value]
        if type(value) is dict:
            return self._read_tagged(value, where, depth)
        return _plain(value, where)

    def _read_tagged(self, value: dict[object, object], where: str, depth: int) -> object:
        if len(value) != 1 or next(iter(value)) not in _TAGS:
            refuse(where, f"an argument is an object whose one key is none of {', '.join(_TAGS)}")
        ((tag, content),) = value.items()
        if tag == "node":
            if type(content) is not str or content not in self._nodes:
                refuse(where, f"it uses {shown(content)}, and no earlier node has that name")
            return self._nodes[content]
        if tag == "dtype":
            if type(content) is not str or content not in DTYPES:
                refuse(where, f"{shown(content)} is no dtype; allowed are {', '.join(DTYPES)}")
            return DTYPES[content]
        if tag == "float":
            if type(content) is not str or content not in _SPECIAL_FLOATS:
                refuse(where, f"{shown(content)} is no special float; allowed are {', '.join(_SPECIAL_FLOATS)}")
            return _SPECIAL_FLOATS[content]
        if tag == "ellipsis":
            if content is not True:
                refuse(where, 'Ellipsis is written as {"ellipsis": true}')
            return Ellipsis
        if tag == "dict":
            if type(content) is not dict:
                refuse(where, f"a dict is written as an object, and this one is {shown(content)}")
            return {_key(key, where): self.read(part, where, depth + 1) for key, part in content.items()}
        if tag == "slice" and (type(content) is not list or len(content) != 3):
            refuse(where, "a slice is written as a list of start, stop and step")
        if type(content) is not list:
            refuse(where, f"a tuple is written as a list, and this one is {shown(content)}")
        parts = tuple(self.read(part, where, depth + 1) for part in content)
        return slice(*parts) if tag == "slice" else parts


def _plain(value: object, where: str) -> object:
    """Return `value` if JSON can hold it unchanged."""
    if type(value) is int and not -MAX_WHOLE <= value < MAX_WHOLE:
        refuse(where, "an argument is an integer that does not fit 64 bits")
    if type(value) is float and not math.isfinite(value):
        refuse(where, 'nan and infinities are written as {"float": "nan"}, "inf" or "-inf"')
    if type(value) is str and len(value) > MAX_TEXT:
        refuse(where, f"an argument is a text of more than {MAX_TEXT} characters")
    if value is not None and type(value) not in (bool, int, float, str):
        refuse(where, f"an argument is {shown(value)}; allowed are {ALLOWED}")
    return value


def _key(key: object, where: str) -> str:
    if type(key) is not str or len(key) > MAX_TEXT:
        refuse(where, f"a key of a dict is {shown(key)}; keys are texts")
    return key


def _check_depth(depth: int, where: str) -> None:
    if depth > MAX_DEPTH:
        refuse(where, f"its arguments are nested deeper than {MAX_DEPTH} levels")
