"""Tell the students' AI assistants what they may do: the setting `assistants` of course.toml, as files in a release.

    assistants = "teach-only"

AGENTS.md holds the rule, in words that an assistant follows; CLAUDE.md leads there. Most assistants read one of them
when they start in its folder. Nothing enforces the rule, and a student may change the files: what comes back in a
hand-in is put aside unread.
"""

from enum import StrEnum
from pathlib import Path

from autograder.course_settings import SettingsError, read_settings

RULE, POINTER = "AGENTS.md", "CLAUDE.md"
FOR_ASSISTANTS = (RULE, POINTER)
"""Names of the files that `write_rule` writes."""

_RULES = Path(__file__).parent / "assistant_rules"
_POINTER = f"The rule for assistants in this course is in {RULE}, and holds for you.\n\n@{RULE}\n"


class AssistantPolicy(StrEnum):
    """What an assistant may do for a student; each value has its rule in `assistant_rules`."""

    OPEN = "open"  # everything; the student names the help
    TEACH_ONLY = "teach-only"  # explain, and write no answer
    NONE = "none"  # nothing


def read_policy(settings: Path) -> AssistantPolicy:
    """Return the course's policy in the file `settings`, by default `TEACH_ONLY`; raises `SettingsError`.

    >>> read_policy(Path("course.toml"))
    <AssistantPolicy.TEACH_ONLY: 'teach-only'>
    """
    value = read_settings(settings).assistants
    if value not in list(AssistantPolicy):
        known = ", ".join(f'"{policy}"' for policy in AssistantPolicy)
        raise SettingsError(f"{settings}: assistants is {value!r:.80}; expected one of {known}.")
    return AssistantPolicy(value)


def write_rule(folder: Path, policy: AssistantPolicy) -> None:
    """Write the rule of a course, and the file that leads to it, into a folder that students get."""
    rule = (_RULES / f"{policy}.md").read_text(encoding="utf-8")
    (folder / RULE).write_text(rule, encoding="utf-8")
    (folder / POINTER).write_text(_POINTER, encoding="utf-8")
