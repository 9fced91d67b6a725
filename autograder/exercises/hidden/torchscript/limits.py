"""Hidden checks and controls of exercise 03.6.

The programs here have other constructs than those in the visible checks, so messages known by heart are no help.
"""

from typing import TypedDict

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.hidden.torchscript.limit_programs import drawn
from autograder.exercises.questions import Question
from autograder.exercises.torchscript import limits as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart

DIFFERENT = ("frozen branch", "frozen number", "none")
AGREEING = ("frozen mode", "lost effect", "none")
IN_SCRIPTS = ("outside the language", "unknown type", "none")
Programs = tuple[str, tuple[str, ...], int, bool]
"""How programs are captured, their limits, how many there are of each, and whether they are of other kinds."""
GROUPS: dict[str, list[Programs]] = {
    "traces": [("trace", DIFFERENT, 4, False)],
    "agreeing traces": [("trace", AGREEING, 5, False)],
    "scripts": [("script", IN_SCRIPTS, 3, False)],
    "other agreeing traces": [("trace", AGREEING, 5, True)],
    "everything": [
        ("trace", DIFFERENT[:2], 2, True),
        ("trace", AGREEING, 1, True),
        ("script", IN_SCRIPTS[:2], 3, True),
        ("script", IN_SCRIPTS[2:], 1, True),
    ],
}


class Case(TypedDict):
    """The observations of a program, and the limit that it reaches."""

    seen: Question
    limit: str


def cases(group: str, number: int) -> list[Case]:
    """Return fresh evidence of the programs of a group; the number decides which."""
    draw = Draw(number, group)
    found: list[Case] = [
        {"seen": drawn(draw, capture, limit, elsewhere=elsewhere), "limit": limit}
        for capture, limits, count, elsewhere in GROUPS[group]
        for limit in limits * count
    ]
    return draw.sample(found, len(found))


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("longer traces that agree on other inputs", "agreement", 1, visible.told_apart("other agreeing traces")),
        Check("everything together, with other programs", "everything", 0.25, visible.told_apart("everything")),
    ),
    controls=(
        ANSWERS.reference(4),
        ANSWERS.edited(
            "silence is gold",
            1.75,
            ("'frozen mode'", "'none'"),
            ("'lost effect' if seen['calls_seen'] == 0 else ", ""),
        ),
        ANSWERS.edited(
            "errors by their type",
            4,
            ("'upported' in seen['error']", "seen['error'].startswith(('UnsupportedNodeError', 'NotSupportedError'))"),
        ),
        ANSWERS.edited(
            "constructs by heart",
            3.75,
            (
                "'upported'",
                "any(w in seen['error'] for w in ('function def', 'SetComp', 'try blocks'))",
            ),
            (" in seen['error'] else", " else"),
        ),
        ANSWERS.edited("every warning counts", 1.6, ("not seen['same_on_others']", "seen['warnings']"), below=True),
        Control("always none", "def which_limit(seen):\n    return 'none'\n", 0),
    ),
    right_here={"text": "a name is a text already"},
)
