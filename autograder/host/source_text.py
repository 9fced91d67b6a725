"""The one door through which the host reads source text that a student wrote.

Python's parser refuses what nests too deep for itself. What it accepts can still be hundreds of levels deep, because
`1 + 1 + 1` or `a.b.c` nest without brackets, and then every recursive function fails on the tree: `ast.unparse`,
`repr`, `copy.deepcopy`. So a text has a limit of characters and its tree a limit of levels, counted without recursion.
A number in base 16 has no such limit as Python sets for base 10, and fails where it is printed.

CPython 3.11 before 3.11.8 counts the levels of the tree that it builds in one place for all threads. Where two build
trees at once, one of them ends with `SystemError` (CPython, gh-106905). So one thread at a time parses here.
"""

import ast
import contextlib
import threading

MAX_CHARACTERS = 200_000
MAX_LEVELS = 100  # each takes about four calls in `ast.unparse`, and Python allows a thousand

MAX_BITS = 1_024  # of an integer
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


def _constant(node: ast.AST) -> object:
    return node.value if isinstance(node, ast.Constant) else None
