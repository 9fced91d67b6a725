"""Read a cell's text as IPython does before it runs it: without a common indentation, and without pasted prompts.

A notebook runs an indented paste, and one with `>>>` in front of each line. So the grade must read them too. What else
a notebook runs and the grade does not, practice and grade name in the same sentence.
"""

import ast
import itertools
import re
import textwrap

from autograder.host.source_text import MAX_CHARACTERS, UnreadableSourceError, parsed

PRACTICE = frozenset({"check", "hint", "progress"})
COMMAND_SENTENCE = (
    "The answer's cell holds a command of the notebook (a line with %, ! or ?), which the grader does not know. "
    "Move it to a cell of its own."
)
PRACTICE_SENTENCE = (
    "The answer's cell also calls {}, which the grader does not know. Keep the answer in its cell, and call {} in the "
    "one below."
)
_COMMAND = re.compile(
    r"^[ \t]*+(?:\w[\w., ]*+=[ \t]*+)?+(?:%{1,2}[A-Za-z_]|![^\s=])|^[ \t]*+\?{0,2}[\w.]++\?{1,2}[ \t]*+$", re.MULTILINE
)

# As in `IPython.core.inputtransformer2`.
_FIRST = re.compile(r"\s*>>>[ \t]?")
_NEXT = re.compile(r"\s*\.\.\.[ \t]?")
_NUMBERED = re.compile(r"(?:(?:\[nav\]|\[ins\])? )?In \[\d+\]: |\s*\.{3,}: ?")
_QUOTES = re.compile(r"(?<!\\)(\"\"\"|\'\'\')")
_PREFIX = re.compile(r"[rubf]*", re.IGNORECASE)


def as_ipython_reads(text: str) -> str:
    r"""Return the Python in a cell's text; a text longer than any that is graded stays as it is.

    >>> as_ipython_reads("\n    def f():\n        pass")
    'def f():\n    pass'
    >>> as_ipython_reads(">>> def f():\n...     pass")
    'def f():\n    pass'
    """
    if len(text) > MAX_CHARACTERS:
        return text
    lines = text.splitlines(keepends=True)
    first = next((number for number, line in enumerate(lines) if not line.isspace()), 0)
    lines = _without_python_prompts(textwrap.dedent("".join(lines[first:])).splitlines(keepends=True))
    numbered = any(map(_NUMBERED.match, lines[:2]))
    return "".join(_without(_NUMBERED, line) for line in lines) if numbered else "".join(lines)


def _without_python_prompts(lines: list[str]) -> list[str]:
    """Remove `>>>` and `...` from lines outside of texts in triple quotes, if any of these begins with `>>>`."""
    quoted = _are_quoted(lines)
    if not any(_FIRST.match(line) for line, kept in zip(lines, quoted, strict=True) if not kept):
        return lines
    read = list[str]()
    for kept, numbers in itertools.groupby(range(len(lines)), quoted.__getitem__):
        part = [lines[number] for number in numbers]
        bare = part if kept else [_without(_FIRST if _FIRST.match(line) else _NEXT, line) for line in part]
        read += part if bare == part else textwrap.dedent("".join(bare)).splitlines(keepends=True)
    return read


def _are_quoted(lines: list[str]) -> list[bool]:
    """Tell of each line whether it is in a text in triple quotes that has no prompts of its own, such as a docstring.

    A text that begins after something else in its line, or behind a prompt that is not the first one, has prompts.
    """
    quoted, quotes, kept, prompted = list[bool](), "", False, False
    for line in lines:
        quoted.append(kept)
        for number, found in enumerate(_QUOTES.finditer(line)):
            if not quotes:
                before = line[: 0 if number else found.start()]
                bare = _without(_NEXT, _without(_FIRST, before))
                begins = not number and _PREFIX.fullmatch(bare.strip()) is not None
                kept = begins and not (prompted and bare != before)
                quotes, quoted[-1] = found[0], kept
            elif quotes == found[0]:
                quotes, kept = "", False
        prompted = prompted or _FIRST.match(line) is not None
    return quoted


def _without(prompt: re.Pattern[str], line: str) -> str:
    found = prompt.match(line)
    return line[found.end() :] if found else line


def only_in_a_notebook(text: str) -> str:
    """Return the sentence about what a notebook runs in a cell and the grader cannot; empty if there is nothing.

    >>> only_in_a_notebook("%%time\\ndef f():\\n    pass")[:53]
    "The answer's cell holds a command of the notebook (a "
    """
    try:
        nodes = list(ast.walk(parsed(text)))
    except UnreadableSourceError:
        is_command = len(text) <= MAX_CHARACTERS and _COMMAND.search(text)
        return COMMAND_SENTENCE if is_command else ""
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    if "get_ipython" in called:  # into such calls IPython turns its commands
        return COMMAND_SENTENCE
    practised = called & PRACTICE - own
    return PRACTICE_SENTENCE.replace("{}", min(practised)) if practised else ""
