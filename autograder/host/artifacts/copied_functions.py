"""Find functions of an answer that are copies of PyTorch's or the library's, whatever names and constants they have.

The host compiles the answer's text, never runs it, and compares instructions. They are those of the other function, or
most runs of them are, if parts were left out. Or the function uses the same globals and attributes in the same order,
perhaps with a few more between them, as where statements were put in. A person looks at what is found; no point depends
on it, since text that is made while the answer runs is compared with nothing.
"""

import ast
import functools
import inspect
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from opcode import opmap
from pathlib import Path
from types import CodeType

from autograder.host.records import CopyRecord
from autograder.host.source_text import UnreadableSourceError, parsed

LEFT_OUT = ("CACHE", "EXTENDED_ARG", "PUSH_NULL", "COPY_FREE_VARS")  # they depend on numbers, and on where names are
ALIKE = {"LOAD_METHOD": "LOAD_ATTR", "LOAD_DEREF": "LOAD_GLOBAL"}  # by where a name was imported or assigned
LEAST_INSTRUCTIONS, LEAST_CHANGED = 60, 150
"""Of fewer instructions, two people may write the same; a changed copy is found from this many on."""
LEAST_NAMES = 8  # globals and attributes; with fewer, two functions may use the same by chance
LEAST_MIXED = 12  # names that are also found with others between them
MOST_NAMES = 2  # times as many as in the other function; of more, some are in any order by chance
RUN = 8  # instructions in a row
SHARE = 0.85  # of the runs of an answer's function that are in the other one, too
SHOWN = 12_000  # characters of each text in a record
MOST_COPIES, MOST_CHARACTERS = 10, 200
"""Of functions in the record of an answer, each a copy of another one, and of a name: a text may hold thousands."""

_LEFT_OUT = bytes(opmap[name] for name in LEFT_OUT)
_KINDS = {opmap[a]: opmap[b] for a, b in ALIKE.items() if opmap.get(a, 256) < 256}  # later Pythons have no LOAD_METHOD
_SAME = bytes.maketrans(bytes(_KINDS), bytes(_KINDS.values()))


def copied_functions(text: str, places: Sequence[str]) -> tuple[CopyRecord, ...]:
    """Return the functions of an answer's text that copy one of these places, with both texts; one for each original.

    A place is a module or package, such as "course_lib.fusion", and perhaps a colon and how the names of its functions
    begin. A package of others as a whole has too many functions to compare with.
    """
    try:
        code = compiled(text)
    except (UnreadableSourceError, SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return ()  # its checks say so
    originals, lines = _originals(tuple(places)), text.splitlines()
    found: dict[_Original, CodeType] = {}
    for each in functions_in(code):
        if (original := originals.of(each)) and len(found) < MOST_COPIES:
            found.setdefault(original, each)
    return tuple(
        CopyRecord(each.co_qualname[-MOST_CHARACTERS:], original.name, _text(lines, each), original.text)
        for original, each in found.items()
    )


def compiled(text: str) -> CodeType:
    """Return the code of a text, in which each `finally` follows as an `else`; raises what `parsed` and `compile` do.

    CPython writes a `finally` once for each way out of its `try`: a page of nested ones takes all memory.
    """
    tree = parsed(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Try | ast.TryStar) and node.finalbody:
            nothing = ast.copy_location(ast.Pass(), node)
            node.handlers = node.handlers or [ast.copy_location(ast.ExceptHandler(body=[nothing]), node)]
            node.orelse, node.finalbody = [*node.orelse, *node.finalbody], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(tree, "<answer>", "exec", dont_inherit=True)


class _Original:
    """A function that an answer may copy."""

    def __init__(self, file: Path, code: CodeType) -> None:
        self._file, self.code = file, code

    @property
    def name(self) -> str:
        """The end of the file's path, and the function's name."""
        return f"{'/'.join(self._file.parts[-3:])}: {self.code.co_qualname}"

    @property
    def text(self) -> str:
        """The function's text."""
        return _text(self._file.read_text(encoding="utf-8").splitlines(), self.code)


class _Originals:
    def __init__(self, originals: Sequence[_Original]) -> None:
        self._whole: dict[bytes, _Original] = {}
        self._names: dict[tuple[str, ...], _Original] = {}
        self._with_run: dict[bytes, list[_Original]] = {}
        for each in originals:
            kinds, names = instructions(each.code), each.code.co_names
            if len(names) >= LEAST_NAMES:
                self._names[names] = each
            if len(kinds) >= LEAST_INSTRUCTIONS and kinds not in self._whole:
                self._whole[kinds] = each
                for run in _runs(kinds) if len(kinds) >= LEAST_CHANGED else ():
                    self._with_run.setdefault(run, []).append(each)
        self._mixed = [(frozenset(names), names) for names in self._names if len(names) >= LEAST_MIXED]

    def of(self, code: CodeType) -> _Original | None:
        """Return the function that this one copies, if there is one."""
        return self._by_names(code.co_names) or self._by_instructions(instructions(code))

    def _by_names(self, names: tuple[str, ...]) -> _Original | None:
        if names in self._names or len(names) <= LEAST_MIXED:
            return self._names.get(names)
        used = frozenset(names)
        near = (each for kept, each in self._mixed if len(each) < len(names) <= MOST_NAMES * len(each) and kept <= used)
        return next((self._names[each] for each in near if _in_order(each, names)), None)

    def _by_instructions(self, kinds: bytes) -> _Original | None:
        if kinds in self._whole or len(kinds) < LEAST_CHANGED:
            return self._whole.get(kinds)
        runs = _runs(kinds)
        shared = Counter(each for run in runs for each in self._with_run.get(run, ()))
        return next((each for each, count in shared.items() if count > SHARE * len(runs)), None)


@functools.cache
def _originals(places: tuple[str, ...]) -> _Originals:
    named = [(file, place.partition(":")[2]) for place in places for file in _files_of(place.partition(":")[0])]
    read = ((file, SourceFileLoader("compared", str(file)).get_code("compared"), begins) for file, begins in named)
    found = ((file, code, begins) for file, whole, begins in read for code in functions_in(whole))
    return _Originals([_Original(file, code) for file, code, begins in found if code.co_qualname.startswith(begins)])


def _files_of(module: str) -> list[Path]:
    """Return the files of a module or package, without importing it; none of a package of others as a whole."""
    first, *rest = module.split(".")
    spec = find_spec(first) if rest else None
    place = Path(next(iter((spec and spec.submodule_search_locations) or ["/nowhere"])), *rest)
    file = place.with_name(f"{place.name}.py")
    return sorted(place.rglob("*.py")) if place.is_dir() else [file] if file.is_file() else []


def functions_in(code: CodeType | None) -> Iterator[CodeType]:
    """Yield the functions in some code; the body of a class is no function, and many classes have the same names."""
    for constant in code.co_consts if code else ():
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                yield constant
            yield from functions_in(constant)


def instructions(code: CodeType) -> bytes:
    """Return the kinds of a function's instructions, without names and constants."""
    return code.co_code[::2].translate(_SAME, _LEFT_OUT)


def _text(lines: Sequence[str], code: CodeType) -> str:
    codes = [code, *functions_in(code)]
    last = max(line for each in codes for _, _, line in each.co_lines() if line is not None)
    text = "\n".join(lines[code.co_firstlineno - 1 : last])
    return text[:SHOWN].encode("utf-8", "replace").decode()


def _in_order(wanted: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Tell whether all of `wanted` are among `names` in this order.

    >>> _in_order(("a", "c"), ("a", "b", "c")), _in_order(("c", "a"), ("a", "b", "c"))
    (True, False)
    """
    rest = iter(names)
    return all(name in rest for name in wanted)


def _runs(kinds: bytes) -> set[bytes]:
    return {kinds[i : i + RUN] for i in range(len(kinds) - RUN + 1)}
