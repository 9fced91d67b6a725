"""Tell whether a function of an answer is a copy of a library's, whatever names, constants and file it has.

A copy runs under the answer's own file name, or under the names of another function of a library, so that no observer
of files sees it. Its instructions give it away: they are those of the library's function, or most runs of them are, if
parts were left out. Or it uses the same globals and attributes in the same order, perhaps with a few more between them,
as where statements were put in. The body of a class is no function: many classes with `__init__` and `forward` use the
same names.
"""

import functools
import inspect
from collections import Counter
from collections.abc import Collection, Iterator
from importlib.machinery import SourceFileLoader
from opcode import opmap
from pathlib import Path
from types import CodeType

LEFT_OUT = ("CACHE", "EXTENDED_ARG", "PUSH_NULL", "COPY_FREE_VARS")  # they depend on numbers, and on where names are
ALIKE = {"LOAD_METHOD": "LOAD_ATTR", "LOAD_DEREF": "LOAD_GLOBAL"}  # by where a name was imported or assigned
LEAST_INSTRUCTIONS, LEAST_CHANGED = 60, 150
"""Of fewer instructions, two people may write the same; a changed copy is told from this many on."""
LEAST_NAMES = 8  # globals and attributes; with fewer, two functions may use the same by chance
LEAST_MIXED = 12  # names that are also known with others between them
MOST_NAMES = 2  # times as many as in the library's; of more, some stand in any order by chance
RUN = 8  # instructions in a row
SHARE = 0.85  # of the runs of an answer's function that are in the library's, too

_LEFT_OUT = bytes(opmap[name] for name in LEFT_OUT)
_KINDS = {opmap[a]: opmap[b] for a, b in ALIKE.items() if opmap.get(a, 256) < 256}  # later Pythons have no LOAD_METHOD
_SAME = bytes.maketrans(bytes(_KINDS), bytes(_KINDS.values()))


def instructions(code: CodeType) -> bytes:
    """Return the kinds of a function's instructions, without names and constants."""
    return code.co_code[::2].translate(_SAME, _LEFT_OUT)


class Copies:
    """Tell copies of the functions in some files; a file that is missing has none.

    With each file stands how the names of those functions begin, or after a dot how they end.
    """

    def __init__(self, places: Collection[tuple[Path, str]]) -> None:
        codes = [code for file, begins in places for code in _functions_in(file, begins)]
        found = {instructions(code): code.co_qualname for code in codes}
        self._files = {str(file) for file, _ in places}
        names = {code.co_names: code.co_qualname for code in codes if code.co_flags & inspect.CO_OPTIMIZED}
        self._names = {each: name for each, name in names.items() if len(each) >= LEAST_NAMES}
        self._mixed = [(frozenset(each), each) for each in self._names if len(each) >= LEAST_MIXED]
        self._whole = {kinds: name for kinds, name in found.items() if len(kinds) >= LEAST_INSTRUCTIONS}
        self._with_run: dict[bytes, list[str]] = {}
        for kinds, name in self._whole.items():
            for run in _runs(kinds) if len(kinds) >= LEAST_CHANGED else ():
                self._with_run.setdefault(run, []).append(name)
        self._known: dict[tuple[CodeType, str, str], str] = {}

    def original(self, code: CodeType, trusted: str) -> str:
        """Return the name of the function that this one copies; empty if it copies none.

        A function that its file contains is no copy if the file is one of these, or lies below `trusted`.
        """
        file = str.__str__(code.co_filename)
        key = code, code.co_qualname, file  # equal codes may have different ones
        name = self._known.get(key)
        if name is None:
            name = self._by_names(code.co_names) or self._found(instructions(code))
            if name and (file.startswith(trusted) or file in self._files) and _contains(file, code):
                name = ""
            self._known[key] = name
        return name

    def _by_names(self, names: tuple[str, ...]) -> str:
        if names in self._names:
            return self._names[names]
        if len(names) <= LEAST_MIXED:
            return ""
        used = frozenset(names)
        near = (each for kept, each in self._mixed if len(each) < len(names) <= MOST_NAMES * len(each) and kept <= used)
        return next((self._names[each] for each in near if _in_order(each, names)), "")

    def _found(self, kinds: bytes) -> str:
        if kinds in self._whole:
            return self._whole[kinds]
        if len(kinds) < LEAST_CHANGED or not self._with_run:
            return ""
        runs = _runs(kinds)
        shared = Counter(name for run in runs for name in self._with_run.get(run, ()))
        return next((name for name, count in shared.items() if count > SHARE * len(runs)), "")


@functools.cache
def copies_of(places: tuple[tuple[Path, str], ...]) -> Copies:
    """Return what tells copies of the functions in these files."""
    return Copies(places)


def _functions_in(file: Path, begins: str) -> Iterator[CodeType]:
    matches = str.endswith if begins.startswith(".") else str.startswith
    return (each for each in _codes_in(str(file)) if matches(each.co_qualname, begins))


@functools.cache
def _codes_in(file: str) -> tuple[CodeType, ...]:
    return tuple(_inside(SourceFileLoader("library", file).get_code("library"))) if Path(file).is_file() else ()


def _contains(file: str, code: CodeType) -> bool:
    """Tell whether a Python file has this function, under the name that the code bears.

    A path that leads back up may lead to a file that the answer made.
    """
    path = Path(file)
    codes = _codes_in(file) if path.suffix == ".py" and ".." not in path.parts else ()
    return any((each.co_qualname, each.co_code) == (code.co_qualname, code.co_code) for each in codes)


def _inside(code: CodeType | None) -> Iterator[CodeType]:
    for constant in code.co_consts if code else ():
        if isinstance(constant, CodeType):
            yield constant
            yield from _inside(constant)


def _in_order(wanted: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Tell whether all of `wanted` are among `names` in this order.

    >>> _in_order(("a", "c"), ("a", "b", "c")), _in_order(("c", "a"), ("a", "b", "c"))
    (True, False)
    """
    rest = iter(names)
    return all(name in rest for name in wanted)


def _runs(kinds: bytes) -> set[bytes]:
    return {kinds[i : i + RUN] for i in range(len(kinds) - RUN + 1)}
