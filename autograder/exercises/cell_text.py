"""Read a cell's text as IPython does before it runs it: without a common indentation, and without pasted prompts.

A notebook runs an indented paste, and one with `>>>` in front of each line. So the grade must read them too. What else
a notebook runs and the grade does not, practice and grade name in the same sentence.
"""

import ast
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

_FIRST_PROMPT = re.compile(r">>>(?: |$)|In \[\d+\]: ", re.MULTILINE)
_PROMPT = re.compile(r"^(?:(?:>>>|\.\.\.)(?: |$)|In \[\d+\]: |[ \t]*\.{3,}: ?)", re.MULTILINE)


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
    dedented = textwrap.dedent("".join(lines[first:]))
    return _PROMPT.sub("", dedented) if _FIRST_PROMPT.match(dedented) else dedented


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
