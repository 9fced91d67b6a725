"""Tell a student how a value differs from the expected one, in a message of bounded length.

>>> contrasted([1, 2], [1, 3])
'[1, 2]; expected [1, 3]'
>>> contrasted(list(range(1000)), [*range(500), 7, *range(501, 1000)], most=20)
'…498, 499, 500, 501, …; expected …498, 499, 7, 501, 50…; the first difference is at [500]'
>>> contrasted({"reads": ["b", "a"]}, {"reads": ["a", "b"]})
"{'reads': ['b', 'a']}; expected {'reads': ['a', 'b']}; in ['reads'] the right entries stand in another order"
"""

import math
from collections import Counter
from itertools import zip_longest
from typing import Any

LARGEST = 1e100  # whole numbers of an answer may be too large to divide


def shortened(value: Any, most: int = 160) -> str:
    """Return the `repr` of a value, cut to `most` characters for a message."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def same(found: Any, expected: Any) -> bool:
    """Tell whether two values of plain data are equal; 2.0 is the number 2, but True is not 1."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return isinstance(found, bool) is isinstance(expected, bool) and bool(found == expected)


def contrasted(found: Any, expected: Any, *, most: int = 160, between: str = "; expected ") -> str:
    """Return both values as text, joined by `between`, each of about `most` characters.

    A longer value is cut so that the first difference stands in the middle, and its place is named. The two texts are
    never the same: values that look alike are shown with their types. If one simple change leads from one value to the
    other, such as another order of a list, a clause says so.
    """
    mine, right = repr(found), repr(expected)
    if mine == right:
        return f"{shortened(found, most)} (a {type(found).__name__}){between}a {type(expected).__name__}"
    clause = _simple(found, expected)
    told = f"; {clause}" if clause else ""
    if max(len(mine), len(right)) <= most:
        return f"{mine}{between}{right}{told}"
    mine, right = _text(found), _text(expected)
    at = next((i for i, (a, b) in enumerate(zip_longest(mine, right)) if a != b), 0)
    start = max(at - most // 2, 0)
    place = _place(found, expected)
    named = f"; the first difference is {place}" if place else ""
    return f"{_window(mine, start, most)}{between}{_window(right, start, most)}{told}{named}"


def _text(value: Any) -> str:
    """Return the `repr` of plain data, with keys in one order."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_text(value[key])}' for key in sorted(value, key=repr))}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)


def _window(text: str, start: int, most: int) -> str:
    before, after = "…" * (start > 0), "…" * (len(text) > start + most)
    return f"{before}{text[start : start + most]}{after}"


def _place(found: Any, expected: Any) -> str:
    """Return where two values first differ, such as `at ['sizes'][3]`; an empty string if it is at their top."""
    path = ""
    while True:
        if isinstance(found, dict) and isinstance(expected, dict):
            if alone := sorted(found.keys() ^ expected.keys(), key=repr):
                where = f"{path}[{shortened(alone[0], 40)}]"
                return f"that {where} is {'missing' if alone[0] in expected else 'one key too many'}"
            keys = [key for key in sorted(expected, key=repr) if not same(found[key], expected[key])]
        elif isinstance(found, list) and isinstance(expected, list):
            keys = [i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if not same(a, b)]
            if not keys and len(found) != len(expected):
                inside = f" in {path}" if path else ""
                return f"that there are {len(found)} entries{inside}, not {len(expected)}"
        else:
            return path and f"at {path}"
        if not keys:
            return path and f"at {path}"
        path += f"[{shortened(keys[0], 40)}]"
        found, expected = found[keys[0]], expected[keys[0]]


def _simple(found: Any, expected: Any) -> str:
    """Return a clause about the one simple change that leads from the expected value to the other; else empty."""
    path = ""
    while True:
        if clause := _relation(found, expected):
            return f"in {path} {clause}" if path else clause
        if isinstance(found, dict) and isinstance(expected, dict) and found.keys() == expected.keys():
            keys = [key for key in sorted(expected, key=repr) if not same(found[key], expected[key])]
        elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
            keys = [i for i, (a, b) in enumerate(zip(found, expected, strict=True)) if not same(a, b)]
        else:
            return ""
        if not keys:
            return ""
        path += f"[{shortened(keys[0], 40)}]"
        found, expected = found[keys[0]], expected[keys[0]]


def _relation(found: Any, expected: Any) -> str:
    if isinstance(found, list) and isinstance(expected, list):
        return _relation_of_lists([_text(item) for item in found], [_text(item) for item in expected])
    if isinstance(found, list) and len(found) == 1 and same(found[0], expected):
        return "the right value stands in a list"
    numbers = (int, float)
    if type(found) in numbers and type(expected) in numbers:
        return _relation_of_numbers(found, expected)
    if isinstance(found, str) and isinstance(expected, str):
        if "".join(found.split()) == "".join(expected.split()):
            return "only blanks or line ends differ"
        return "only small and capital letters differ" if found.lower() == expected.lower() else ""
    return ""


def _relation_of_lists(found: list[str], expected: list[str]) -> str:
    mine, right = Counter(found), Counter(expected)
    if mine == right:
        return "the right entries stand in another order" if found != expected else ""
    if mine.keys() == right.keys():
        return "entries are repeated" if mine > right else "an entry that occurs several times is listed too seldom"
    if not found:
        return "nothing was found"
    if right > mine and _in_order(found, expected):
        return f"missing: {shortened(next(iter((right - mine).elements())), 60)}"
    if mine > right and _in_order(expected, found):
        return f"one too many: {shortened(next(iter((mine - right).elements())), 60)}"
    return ""


def _in_order(some: list[str], every: list[str]) -> bool:
    """Tell whether `some` is `every` with entries left out."""
    rest = iter(every)
    return all(item in rest for item in some)


def _relation_of_numbers(found: float, expected: float) -> str:
    if not all(1 / LARGEST < abs(number) < LARGEST for number in (found, expected)):
        return ""
    if found == -expected:
        return "the sign is the wrong way round"
    if abs(expected) != 1 and math.isclose(found * expected, 1.0, rel_tol=1e-9):
        return "it is upside down"
    power = math.log10(abs(found / expected))
    if found / expected > 0 and abs(power) > 2 and math.isclose(power, round(power), abs_tol=1e-9):
        return f"it is 1e{round(power)} times as large, as in another unit"
    return ""
