"""The one door through which the host reads source text that a student wrote.

Python's parser refuses what nests too deep for itself. What it accepts can still be hundreds of levels deep, because
`1 + 1 + 1` or `a.b.c` nest without brackets, and then every recursive function fails on the tree: `ast.unparse`,
`repr`, `copy.deepcopy`. So a text has a limit of characters and its tree a limit of levels, counted without recursion.
A number in base 16 has no such limit as Python sets for base 10, and fails where it is printed.

`ast.unparse` of CPython 3.11 ends some f-strings at a quote within, so that what follows is code. So a text that the
host wrote of a tree runs only if it is read as this tree again.

CPython 3.11 before 3.11.8 counts the levels of the tree that it builds in one place for all threads. Where two build
trees at once, one of them ends with `SystemError` (CPython, gh-106905). So one thread at a time parses here.
"""

import ast
import contextlib
import copy
import threading
from collections.abc import Container, Iterable, Sequence

MAX_CHARACTERS = 200_000
MAX_LEVELS = 100  # each takes about four calls in `ast.unparse`, and Python allows a thousand

MAX_BITS = 1_024  # of an integer
GUARD = "__name__ == '__main__'"
TRIES = 3  # of CPython's parser, which other code in another thread may disturb

_PARSER = threading.Lock()


class UnreadableSourceError(Exception):
    """The text is no Python, or longer or deeper than the host reads."""


def parsed(text: str, *, most: int = MAX_CHARACTERS) -> ast.Module:
    """Return the syntax tree of at most `most` characters; raises `UnreadableSourceError`.

    >>> ast.unparse(parsed("x = 1+1"))
    'x = 1 + 1'
    >>> parsed("+".join(["1"] * 900))
    Traceback (most recent call last):
    autograder.host.source_text.UnreadableSourceError: the text nests deeper than 100 levels
    """
    if len(text) > most:
        raise UnreadableSourceError(f"the text has {len(text):,} characters; at most {most:,} are read")
    try:
        tree = tree_of(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UnreadableSourceError("the text is no Python, or nests too deep to be parsed") from None
    level: list[ast.AST] = [tree]
    for _ in range(MAX_LEVELS):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if any(type(value) is int and value.bit_length() > MAX_BITS for value in map(_constant, level)):
            raise UnreadableSourceError(f"the text holds an integer of more than {MAX_BITS:,} bits")
        if not level:
            return tree
    raise UnreadableSourceError(f"the text nests deeper than {MAX_LEVELS} levels")


def tree_of(text: str) -> ast.Module:
    """Return what `ast.parse` returns, for one thread after the other; for a text of the course, or behind a limit."""
    with _PARSER:
        for _ in range(TRIES - 1):
            with contextlib.suppress(SystemError):
                return ast.parse(text)
        return ast.parse(text)


def text_in_lines(tree: ast.Module) -> str:
    r"""Return a text of a tree that came through `parsed`, or of copies of its nodes: each statement in its line.

    >>> text_in_lines(parsed("\n\nx = (1+\n1); y = 2\nif x: y = 3; x = 4"))
    '\n\nx = 1 + 1\ny = 2\nif x: y = 3; x = 4'

    Raises `UnreadableSourceError` unless the text is read as this tree again.
    """
    lines: list[str] = []
    with contextlib.suppress(SyntaxError, ValueError, AttributeError, TypeError):
        _put(tree.body, 0, lines)
        if ast.dump(tree_of("\n".join(lines))) == ast.dump(tree):
            return "\n".join(lines)
    raise UnreadableSourceError("something in it cannot be written again, such as an f-string that holds quotes")


def _put(statements: Sequence[ast.stmt], depth: int, lines: list[str]) -> None:
    simple = not any(hasattr(each, "body") for each in statements)
    inline = simple and depth > 0 and {each.lineno for each in statements} == {len(lines)}
    last = 0  # the line in which the statement before ends, if one may follow it there
    for each in statements:
        behind = "; " if last == each.lineno == len(lines) else " " if inline else ""
        for decorator in getattr(each, "decorator_list", ()):
            _put_line(f"@{ast.unparse(decorator)}", decorator.lineno, depth, lines)
        _put_line(ast.unparse(_head(each)), each.lineno, depth, lines, behind)
        last = 0 if hasattr(each, "body") else each.end_lineno or 0
        _put(getattr(each, "body", ()), depth + 1, lines)
        other = getattr(each, "orelse", [])
        while len(other) == 1 and isinstance(each, ast.If) and isinstance(other[0], ast.If):
            _put_line(f"el{ast.unparse(_head(other[0]))}", other[0].lineno, depth, lines)
            _put(other[0].body, depth + 1, lines)
            other = other[0].orelse
        if other:
            _put_line("else:", other[0].lineno - 1, depth, lines)
            _put(other, depth + 1, lines)


def _put_line(text: str, line: int, depth: int, lines: list[str], behind: str = "") -> None:
    if behind:
        lines[-1] += behind + text
    else:
        lines += [""] * (line - 1 - len(lines))
        lines += ("    " * depth + text).split("\n")


def _head(statement: ast.stmt) -> ast.stmt:
    """Return a statement without its decorators and without the statements in it."""
    inside = [name for name in ("body", "orelse", "decorator_list") if hasattr(statement, name)]
    head = copy.copy(statement)
    vars(head).update({name: [] for name in inside})
    return head


def unparsed(node: ast.AST | None) -> str:
    """Return what `ast.unparse` writes, for messages and comparisons; empty for what it cannot write."""
    try:
        return "" if node is None else ast.unparse(node)
    except (ValueError, TypeError, KeyError, AttributeError):  # the last three from no tree that a parser made
        return ""


def ids_under(roots: Iterable[ast.AST]) -> set[int]:
    """Return the ids of all nodes of some trees; what lies in several of them is walked once."""
    found, waiting = set[int](), list(roots)
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found.add(id(node))
            waiting += ast.iter_child_nodes(node)
    return found


def is_main_guard(statement: ast.stmt) -> bool:
    """Tell whether it is `if __name__ == "__main__":`, whose body does not run where a text is graded."""
    return isinstance(statement, ast.If) and not statement.orelse and unparsed(statement.test) == GUARD


def imports(statement: ast.stmt, known: Container[str]) -> bool:
    """Tell whether it imports nothing but what is known; several names may stand in one line."""
    module = f"from {statement.module} " if isinstance(statement, ast.ImportFrom) else ""
    named = statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else ()
    return bool(named) and all(f"{module}import {unparsed(each)}" in known for each in named)


def _constant(node: ast.AST) -> object:
    return node.value if isinstance(node, ast.Constant) else None
