"""Small programs written as lists of steps, to predict what Dynamo makes of them.

    >>> print(source_of([{"do": "compute"}, {"do": "print"}]))
    def program(x):
        x = x * 2
        print("step")
        return x

Steps: `compute` an operator; `print` and `log` a text; `item` turns a sum into a Python number and adds it;
`value_if` branches on a value, `size_if` on a size; `append` writes a size into a list; `call` runs its
`body` as a function of its own; `repeat` runs its `body` in a loop, `times` times.
"""

import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from course_lib.errors import ModelError

Steps = Sequence[Mapping[str, Any]]

LINES = {
    "compute": ("x = x * 2",),
    "print": ('print("step")',),
    "log": ('LOG.warning("step")',),
    "item": ("x = x + x.sum().item()",),
    "value_if": ("if x.sum() > 0:", "    x = x + 1", "else:", "    x = x - 1"),
    "size_if": ("if x.shape[0] > 2:", "    x = x + 1", "else:", "    x = x - 1"),
    "append": ("SEEN.append(x.shape[0])",),
}
HEAD = """\
import logging

LOG = logging.getLogger("steps")
LOG.propagate = False
LOG.addHandler(logging.NullHandler())
SEEN = []
"""


def source_of(steps: Steps) -> str:
    """Return the program as text: first the functions that it calls, then the function `program` of one tensor."""
    written: list[str] = []
    _write("program", steps, written)
    return "\n\n\n".join(written)


def program_of(steps: Steps) -> Callable[..., Any]:
    """Return the program as a new function, which Dynamo has not compiled before."""
    text = f"{HEAD}\n\n{source_of(steps)}\n"
    filename = f"<steps {hash(text)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "steps"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["program"]


def _write(name: str, steps: Steps, written: list[str]) -> None:
    """Add the function `name` to `written`, after those that it calls."""
    lines = list(_lines(name, steps, written))
    body = "".join(f"    {line}\n" for line in (*lines, "return x"))
    written.append(f"def {name}(x):\n{body}".rstrip())


def _lines(name: str, steps: Steps, written: list[str]) -> Iterator[str]:
    for number, step in enumerate(steps):
        if step["do"] == "call":
            called = f"{name}_{number}" if name != "program" else f"part_{number}"
            _write(called, step["body"], written)
            yield f"x = {called}(x)"
        elif step["do"] == "repeat":
            yield f"for _ in range({step['times']}):"
            yield from (f"    {line}" for line in _lines(f"{name}_{number}", step["body"], written))
        elif step["do"] in LINES:
            yield from LINES[step["do"]]
        else:
            raise ModelError(f"There is no step {step['do']!r}; steps are {', '.join(LINES)}, call and repeat.")
