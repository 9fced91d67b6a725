"""What every hostile file says about itself, read from its docstring, and the table of all of them.

    Strategy: ... Surface: ...

    Class: CLASS. Unprotected: GRADER OUTCOME. Level: N.
    Must get 0: what stops it.

Where an attack changes the reference solution, or pastes a file of ours, a line takes the place of that text:

    # The reference solution stands here.
    # The reference solution stands here, and is called NAME.
    # The file PATH of this repository stands here.

GRADER is one of `naive_grader.py`, OUTCOME what the attack does to it; N is the weakest level of isolation that stops
the attack (5 needs none). Members of the demonstration's class, in the folder above, state a mark for each answer.

Run as `python -m tests.autograder.host.hostile.catalogue` it writes the table into tests/submissions/hostile/README.md,
and a summary by classes into autograder/README.md.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from autograder.exercises.registry import find, hidden_part
from autograder.host.exercise import REFERENCE

ROOT = Path(__file__).parents[4]
HOSTILE = ROOT / "tests" / "submissions" / "hostile"
README = ROOT / "autograder" / "README.md"
LIST = HOSTILE / "README.md"
# Each class with what stops its attacks.
CLASSES = {
    "result channel": "only JSON and raw tensors cross, within limits, one reply to one request with a secret number",
    "clock": "the host's clock, in another process than answer and baseline",
    "work hidden": "the reply is a copy of plain tensors; in timed calls, inputs come with the start signal",
    "replay": "every call has new random inputs, after others of the same sizes, and every output is compared with its "
    "own reference",
    "checker": "comparison, references and private copies of inputs stay in the host; form is compared before values",
    "answer theft": "the worker holds neither the host, the exercises, nor the part of the library with the answer",
    "graph gaming": "the host compares returned tensors with those sent, rebuilds the graph from allowed operators, "
    "runs it on new weights, in training too, and counts every call",
    "notebook": "the notebook is read as data within limits, and cells are restored from the gradebook",
    "machine": "namespaces or Landlock, seccomp, and limits on time, memory, processes, files and output",
}
OUTCOMES = ("gives full marks", "hangs", "breaks", "runs its code", "gives way")
_FORM = re.compile(
    r"Strategy: (?P<strategy>.+?)\. Surface: (?P<surface>.+?)\.\n\n"
    r"Class: (?P<cls>.+?)\. Unprotected: grader (?P<grader>\w+) (?P<outcome>.+?)\. Level: (?P<level>[1-5])\.\n"
    r"Must get (?:at most )?(?P<most>[\d.]+): (?P<stopped>.+)\.",
    re.DOTALL,
)
_REFERENCE = re.compile(r"^# The reference solution stands here(?:, and is called (?P<name>\w+))?\.$", re.MULTILINE)
_FILE = re.compile(r"^# The file (?P<path>\S+) of this repository stands here\.$", re.MULTILINE)
_WRITTEN = "written by tests/autograder/host/hostile/catalogue.py -->"
_TABLE, _CLASSES, _END = (
    f"<!-- the table of attacks, {_WRITTEN}",
    f"<!-- the classes of attacks, {_WRITTEN}",
    "<!-- end -->",
)


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
    """Read one file; raises `ValueError` if its docstring has another form."""
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


def text_of(path: Path) -> str:
    """Return what is handed in: the file's text, with the texts in place of the lines that name them."""

    def reference(line: re.Match[str]) -> str:
        part, entry = hidden_part(path.parent.name), find(path.parent.name).entry_point
        answer = next(control.answer for control in part.controls if control.name == REFERENCE) if part else ""
        return re.sub(rf"\b{entry}\b", line["name"] or entry, answer)

    text = _FILE.sub(lambda line: (ROOT / line["path"]).read_text(encoding="utf-8"), path.read_text(encoding="utf-8"))
    return _REFERENCE.sub(reference, text)


def attacks(*folders: str) -> list[Attack]:
    """All files of the given folders, or of all."""
    paths = sorted(HOSTILE.glob("*/*.py"))
    return [read(path) for path in paths if not folders or path.parent.name in folders]


def table() -> str:
    """The tables in Markdown, one a class."""
    return "\n".join(f"**{cls.capitalize()}**\n\n{_table_of(cls)}" for cls in CLASSES)


def _table_of(cls: str) -> str:
    lines = ["| attack | file | what stops it | level |", "|---|---|---|---|"]
    for attack in sorted((each for each in attacks() if each.cls == cls), key=lambda each: each.name):
        strategy = f"{attack.strategy[0].upper()}{attack.strategy[1:]}".replace("|", "\\|")
        level = "any" if attack.level == 5 else f"{attack.level}" if attack.level == 1 else f"1–{attack.level}"
        stopped = attack.stopped.replace("|", "\\|")
        lines.append(f"| {strategy} | `{attack.name}` | {stopped} | {level} |")
    return "\n".join(lines) + "\n"


def summary() -> str:
    """Return the classes in Markdown, with the number of attacks and what stops them."""
    lines = ["| class | attacks | of which need isolation | what stops them |", "|---|---|---|---|"]
    for cls, stopped in CLASSES.items():
        levels = [attack.level for attack in attacks() if attack.cls == cls]
        lines.append(f"| {cls} | {len(levels)} | {sum(level < 5 for level in levels)} | {stopped} |")
    return "\n".join(lines) + "\n"


def written_tables() -> tuple[str, str]:
    """Return the table and the summary as the two files have them."""
    texts = (LIST.read_text(encoding="utf-8").split(_TABLE)[1], README.read_text(encoding="utf-8").split(_CLASSES)[1])
    table_text, summary_text = (text.split(_END)[0].strip() + "\n" for text in texts)
    return table_text, summary_text


def write_tables() -> None:
    """Put table and summary into their files, in place of the old ones."""
    for path, begin, text in ((LIST, _TABLE, table()), (README, _CLASSES, summary())):
        before, rest = path.read_text(encoding="utf-8").split(begin)
        path.write_text(f"{before}{begin}\n\n{text}\n{_END}{rest.split(_END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    write_tables()
    print(f"{len(attacks())} attacks")
