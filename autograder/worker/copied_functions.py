"""Tell whether a function of an answer is a copy of a library's, whatever names, constants and file it has.

A copy runs under the answer's own file name, so that no observer of files sees it, or under another name than the
function has in its file. Its instructions give it away: they
are those of the library's function, or most runs of them are, if parts were left out. Or it uses the same globals and
attributes in the same order, perhaps with a few more between them, as where statements were put in. The body of a class
is no function: many classes with `__init__` and `forward` use the same names.
"""

import functools
import inspect
from collections.abc import Collection, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

LEFT_OUT = (0, 144)  # CACHE and EXTENDED_ARG, which depend on numbers
LEAST_INSTRUCTIONS, LEAST_CHANGED = 60, 150
"""Of fewer instructions, two people may write the same; a changed copy is told from this many on."""
LEAST_NAMES = 8  # globals and attributes; with fewer, two functions may use the same by chance
LEAST_MIXED = 12  # names that are also known with others between them
MOST_NAMES = 2  # times as many as in the library's; of more, some stand in any order by chance
RUN = 8  # instructions in a row
SHARE = 0.85  # of the runs of an answer's function that are in the library's, too


def instructions(code: CodeType) -> bytes:
    """Return the kinds of a function's instructions, without names and constants."""
    return bytes(kind for kind in code.co_code[::2] if kind not in LEFT_OUT)


class Copies:
    """Tell copies of the functions in some files; a file that is missing has none.

    With each file stands how the names of those functions begin, or after a dot how they end.
    """

    def __init__(self, places: Collection[tuple[Path, str]]) -> None:
        codes = [code for file, begins in places for code in _functions_in(file, begins)]
        found = {code.co_qualname: instructions(code) for code in codes}
        self._files = {str(file) for file, _ in places}
        self._own = {(c.co_filename, c.co_qualname) for file in dict(places) for c in _functions_in(file, "")}
        names = {code.co_names: code.co_qualname for code in codes if code.co_flags & inspect.CO_OPTIMIZED}
        self._names = {each: name for each, name in names.items() if len(each) >= LEAST_NAMES}
        self._whole = {kinds: name for name, kinds in found.items() if len(kinds) >= LEAST_INSTRUCTIONS}
        self._runs = {name: _runs(kinds) for kinds, name in self._whole.items() if len(kinds) >= LEAST_CHANGED}
        self._known: dict[tuple[CodeType, str], str] = {}

    def original(self, code: CodeType, trusted: str) -> str:
        """Return the name of the function that this one copies; empty if it copies none.

        Functions of files below `trusted` are no copies, but for those of the refused files under a changed name.
        """
        file = str.__str__(code.co_filename)
        if file.startswith(trusted) and file not in self._files:
            return ""
        key = code, code.co_qualname  # equal codes may have different ones
        if key not in self._known:
            is_itself = (file, code.co_qualname) in self._own
            self._known[key] = "" if is_itself else self._by_names(code.co_names) or self._found(instructions(code))
        return self._known[key]

    def _by_names(self, names: tuple[str, ...]) -> str:
        if names in self._names:
            return self._names[names]
        near = (each for each in self._names if LEAST_MIXED <= len(each) < len(names) <= MOST_NAMES * len(each))
        return next((self._names[each] for each in near if _in_order(each, names)), "")

    def _found(self, kinds: bytes) -> str:
        if kinds in self._whole:
            return self._whole[kinds]
        runs = _runs(kinds) if len(kinds) >= LEAST_CHANGED else set()
        return next((name for name, theirs in self._runs.items() if len(runs & theirs) > SHARE * len(runs)), "")


@functools.cache
def copies_of(places: tuple[tuple[Path, str], ...]) -> Copies:
    """Return what tells copies of the functions in these files."""
    return Copies(places)


def _functions_in(file: Path, begins: str) -> Iterator[CodeType]:
    code = SourceFileLoader("library", str(file)).get_code("library") if file.is_file() else None
    matches = str.endswith if begins.startswith(".") else str.startswith
    return (each for each in _inside(code) if matches(each.co_qualname, begins))


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
