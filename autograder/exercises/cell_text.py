"""Read a cell's text as IPython does before it runs it: without a common indentation, and without pasted prompts.

A notebook runs an indented paste, and one with `>>>` in front of each line. So the grade must read them too.
"""

import re
import textwrap

from autograder.host.source_text import MAX_CHARACTERS

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
