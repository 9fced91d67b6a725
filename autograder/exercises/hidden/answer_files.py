"""Read the answers of known marks that test an exercise's checks, and make small variants of its reference.

The answers are in `answers/<lesson>`: `<exercise>.py` is the reference solution, equal to the notebook's, and
`<exercise>_<control>.py` is another answer; `<exercise>_styles.py` holds several right ones. An exercise with many
answers may have a folder for them, `<exercise>/<control>.py`. They are read as text and never imported.
"""

import ast
import re
from functools import cache
from pathlib import Path

from autograder.host.exercise import REFERENCE, Control
from autograder.host.source_text import tree_of

FOLDER = Path(__file__).parent / "answers"

CODE_NOT_SEEN = {"graph_module.recompile() -> pass": "nodes cross to the host, not generated code"}
"""The edit of a pass that changes its generated code alone."""
NOT_SEEN = {"graph.lint() -> pass": "lint only looks at what was built", **CODE_NOT_SEEN}
"""Edits of a pass that change nothing of the graph which it returns."""
NO_OPERATORS = {
    "swapped operands": "it spoils calls of the course's operators, of which there are none",
    "one precision lower": "as above",
}
"""Standard controls that are right answers where a pass inserts no operator of the course."""


class UnknownEditError(ValueError):
    """An edit does not fit its answer: the text to be replaced does not occur exactly once."""


class Answers:
    """The answers of known marks to the exercise whose hidden part is `module`.

    `after` lists the answers to exercises whose names the reference uses; their references are put before it.
    """

    def __init__(self, module: str, *, after: "tuple[Answers, ...]" = ()) -> None:
        self._lesson, self._exercise = module.split(".")[-2:]
        self.text: str = "\n\n".join([*(answers.text for answers in after), self._read(self._exercise)])

    def reference(self, marks: float) -> Control:
        """Return the reference solution as a control."""
        return Control(REFERENCE, self.text, marks)

    def file(self, name: str, marks: float, *, below: bool = False, trap: str = "") -> Control:
        """Return the answer in the file that is named after the exercise and the control."""
        return Control(name, self.text_of(name), marks, below, trap)

    def text_of(self, name: str) -> str:
        """Return the text of the file that is named after the exercise and the control called `name`."""
        ending = re.sub(r"\W+", "_", name.replace("'", "").lower())
        folder = FOLDER / self._lesson / self._exercise
        return self._read(f"{self._exercise}/{ending}" if folder.is_dir() else f"{self._exercise}_{ending}")

    def of_lesson(self, stem: str) -> str:
        """Return a text that answers to several exercises of the lesson have in common; see `joined`."""
        return self._read(stem)

    def joined(self, name: str, marks: float, *texts: str) -> Control:
        """Return an answer of several texts, such as one that takes another way for some sizes, as a control."""
        return Control(name, "\n\n".join(texts), marks)

    def styles(self, marks: float) -> tuple[Control, ...]:
        """Return the answers in the file with the exercise's answers in other styles, each as a control."""
        return tuple(Control(name, text, marks) for name, text in sections(self._read(f"{self._exercise}_styles")))

    def edited(self, name: str, marks: float, *edits: tuple[str, str], below: bool = False, trap: str = "") -> Control:
        """Return the reference with some of its text replaced; see `edited`."""
        return Control(name, edited(self.text, *edits), marks, below, trap)

    def _read(self, stem: str) -> str:
        return (FOLDER / self._lesson / f"{stem}.py").read_text("utf-8")


def sections(text: str) -> list[tuple[str, str]]:
    """Return the answers in a file with their names; a line `# %% name` begins each, and a file without is one.

    >>> sections("# %% one\\na = 1\\n# %% two\\na = 2\\n")
    [('one', 'a = 1\\n'), ('two', 'a = 2\\n')]
    """
    before, *parts = re.split(r"^# %% (.+)\n", text, flags=re.MULTILINE)
    named = [(name, body.strip() + "\n") for name, body in zip(parts[::2], parts[1::2], strict=True)]
    return named or [("", before)]


def edited(answer: str, *edits: tuple[str, str]) -> str:
    """Return `answer` with each text replaced; each must occur exactly once, otherwise `UnknownEditError`.

    Edits apply to the output of `ast.unparse`, so formatting and comments of the answer do not matter.

    >>> edited("total = ( 1 +\\n  2 )  # a sum", ("1 + 2", "1 - 2"))
    'total = 1 - 2\\n'
    """
    text = _unparsed(answer)
    for before, after in edits:
        if text.count(before) != 1:
            raise UnknownEditError(f"{before!r} occurs {text.count(before)} times, not once, in:\n{text}")
        text = text.replace(before, after)
    return text


@cache  # most exercises have ten edits of one reference
def _unparsed(answer: str) -> str:
    return ast.unparse(tree_of(answer)) + "\n"
