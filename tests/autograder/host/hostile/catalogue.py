"""What every hostile file says about itself, read from its docstring, and the table of all of them.

    Strategy: ... Surface: ...

    Class: CLASS. Unprotected: GRADER OUTCOME. Level: N.
    Must get 0: what stops it.

GRADER is one of `naive_grader.py`, OUTCOME what the attack does to it; N is the weakest level of isolation that stops
the attack (5 needs none). Members of the demonstration's class, in the folder above, state a mark for each answer.

Run as `python -m tests.autograder.host.hostile.catalogue` it writes the table into autograder/README.md.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[4]
HOSTILE = ROOT / "tests" / "submissions" / "hostile"
README = ROOT / "autograder" / "README.md"
CLASSES = (
    "result channel",
    "clock",
    "work hidden",
    "replay",
    "checker",
    "answer theft",
    "graph gaming",
    "notebook",
    "machine",
)
OUTCOMES = ("gives full marks", "hangs", "breaks", "runs its code", "gives way")
_FORM = re.compile(
    r"Strategy: (?P<strategy>.+?)\. Surface: (?P<surface>.+?)\.\n\n"
    r"Class: (?P<cls>.+?)\. Unprotected: grader (?P<grader>\w+) (?P<outcome>.+?)\. Level: (?P<level>[1-5])\.\n"
    r"Must get (?:at most )?(?P<most>[\d.]+): (?P<stopped>.+)\.",
    re.DOTALL,
)
_BEGIN, _END = "<!-- the table of attacks, written by tests/autograder/host/hostile/catalogue.py -->", "<!-- end -->"


@dataclass(frozen=True)
class Attack:
    """One hostile file."""

    path: Path
    strategy: str
    surface: str
    cls: str  # one of `CLASSES`
    grader: str  # which naive grader it succeeds against
    outcome: str  # and how: one of `OUTCOMES`
    level: int  # the weakest level that stops it
    most: float  # points that it may get: those of its honest part
    stopped: str  # by what

    @property
    def name(self) -> str:
        """Folder and file, without the ending."""
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def exercise(self) -> str:
        """The exercise that it answers; the folder `machine` asks its own questions."""
        return self.path.parent.name


def read(path: Path) -> Attack:
    """Read one file; raises ``ValueError`` if its docstring has another form."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    found = _FORM.fullmatch(docstring)
    if not found:
        raise ValueError(f"{path.name}: its docstring has not the form that catalogue.py describes")
    texts = {key: " ".join(value.split()) for key, value in found.groupdict().items()}
    level, most = int(texts.pop("level")), float(texts.pop("most"))
    attack = Attack(path, level=level, most=most, **texts)
    if attack.cls not in CLASSES or attack.outcome not in OUTCOMES:
        raise ValueError(f"{path.name}: class {attack.cls!r} or outcome {attack.outcome!r} is unknown")
    return attack


def attacks(*folders: str) -> list[Attack]:
    """All files of the given folders, or of all."""
    paths = sorted(HOSTILE.glob("*/*.py"))
    return [read(path) for path in paths if not folders or path.parent.name in folders]


def table() -> str:
    """The table in Markdown, class by class."""
    lines = ["| attack | file | what stops it | level |", "|---|---|---|---|"]
    for attack in sorted(attacks(), key=lambda a: (CLASSES.index(a.cls), a.name)):
        strategy = f"{attack.strategy[0].upper()}{attack.strategy[1:]}".replace("|", "\\|")
        level = "any" if attack.level == 5 else f"{attack.level}" if attack.level == 1 else f"1–{attack.level}"
        stopped = attack.stopped.replace("|", "\\|")
        lines.append(f"| *{attack.cls}*: {strategy} | `{attack.name}` | {stopped} | {level} |")
    return "\n".join(lines) + "\n"


def table_in_readme() -> str:
    """The table as the README has it."""
    return README.read_text(encoding="utf-8").split(_BEGIN)[1].split(_END)[0].strip() + "\n"


def write_table() -> None:
    """Put the table into the README, in place of the old one."""
    before, rest = README.read_text(encoding="utf-8").split(_BEGIN)
    README.write_text(f"{before}{_BEGIN}\n\n{table()}\n{_END}{rest.split(_END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    write_table()
    print(f"{len(attacks())} attacks")
