"""Tell the students' AI assistants what they may do: the setting `assistants` of course.toml, as files in a release.

    assistants = "teach-only"

AGENTS.md holds the rule, in words that an assistant follows; CLAUDE.md leads there. Most assistants read one of them
when they start in its folder. Nothing enforces the rule, and a student may change the files: what comes back in a
hand-in is put aside unread.
"""

from pathlib import Path

RULE, POINTER = "AGENTS.md", "CLAUDE.md"
FOR_ASSISTANTS = (RULE, POINTER)
"""Names of the files that `write_rule` writes."""

_RULES = Path(__file__).parent / "assistant_rules"
_POINTER = f"The rule for assistants in this course is in {RULE}, and holds for you.\n\n@{RULE}\n"


def write_rule(folder: Path, policy: str) -> None:
    """Write the rule for a value of the setting, and the file that leads to it, into a folder that students get."""
    rule = (_RULES / f"{policy}.md").read_text(encoding="utf-8")
    (folder / RULE).write_text(rule, encoding="utf-8")
    (folder / POINTER).write_text(_POINTER, encoding="utf-8")
