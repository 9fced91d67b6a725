"""Hidden checks and controls of exercise 17.5.

They judge the form, and whether a counter starts as it was counted. A log that says nothing and starts so gets these 6
points, and none of the 24 that a person gives.
"""

import re

from autograder.exercises.capstone.work_log import follows, has_both_verdicts
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)


def _texts(answer: str) -> list[str]:
    """Return the texts of an answer that only a person reads: those of several words."""
    return [text for text in re.findall(r'": "([^"\n]+)"', answer) if len(text.split()) > 2]


FILLER = """
def work_log(question):
    return {"entries": [], "threats": []}
"""

HIDDEN = HiddenPart(
    checks=(
        Check("a dead end and a success", "dead ends", 1, has_both_verdicts),
        Check("each entry starts where the last one ended", "numbers", 1.5, follows),
    ),
    controls=(
        ANSWERS.reference(6),
        *ANSWERS.styles(6),
        Control("no entry", FILLER, 0),
        Control(
            "prose", "def work_log(question):\n    return 'I fused the ends of both blocks, and it was cheaper.'\n", 0
        ),
        ANSWERS.edited(
            "numbers of no layer",
            0,
            ("'before': 29, 'after': 20", "'before': 9, 'after': 8"),
            ("'before': 29, 'after': 26", "'before': 9, 'after': 8"),
            ("'before': 26, 'after': 23", "'before': 8, 'after': 7"),
        ),
        ANSWERS.edited(
            "times alone",
            0,
            (
                "    return {'entries': entries",
                "    for each in entries:\n        each['measurement'] |= {'counter': 'step_time', 'unit': 'us'}\n"
                "    return {'entries': entries",
            ),
        ),
        ANSWERS.edited("two entries", 1, ("'entries': entries", "'entries': entries[1:]")),
        ANSWERS.edited(
            "no dead end",
            3.5,
            ("'dropped'", "'kept'"),
            ("'after': 20", "'after': 29"),
            trap='`"kept"` or `"dropped"`. Use both.',
        ),
        ANSWERS.edited(
            "a dead end that was kept", 3.5, ("'dropped'", "'kept'"), trap='`"kept"` or `"dropped"`. Use both.'
        ),
        ANSWERS.edited(
            "an entry that starts anew",
            4.5,
            ("'before': 26", "'before': 29"),
            trap="`before` is the `after` of the last kept entry with that counter",
        ),
        ANSWERS.edited(
            "a change that made it dearer",
            4.5,
            ("'after': 23", "'after': 30"),
            trap="In a kept entry, `after` is less.",
        ),
        ANSWERS.edited("another word", 3.5, ("'dropped'", "'failed'"), trap='`"kept"` or `"dropped"`. Use both.'),
        ANSWERS.edited("numbers as texts", 3.5, ("'before': 26", "'before': '26 launches'")),
        ANSWERS.edited("another unit", 5, ("'after': 20", "'after': 20, 'unit': 'bytes'")),
        ANSWERS.edited("no such counter", 3.5, ("'after': 20", "'after': 20, 'counter': 'speed'")),
        ANSWERS.edited("a hypothesis in one word", 4.5, ("'hypothesis': 'The ends", "'hypothesis': '' and 'The ends")),
        ANSWERS.edited("no threat", 5, ("'threats': threats", "'threats': []")),
        ANSWERS.edited("one threat", 5, ("'threats': threats", "'threats': threats[:1]")),
        ANSWERS.edited("the same threat twice", 5, ("'threats': threats", "'threats': [threats[0]] * 2")),
    ),
    right_here={"previous answer": "a log is the same whenever one asks"},
    equivalent={
        **{f"{text!r} -> {text + '_'!r}": "a person reads the texts" for text in _texts(ANSWERS.text)},
        "20 -> 21": "what a dropped change measured leads nowhere",
        "23 -> 24": "nothing follows the last entry",
    },
)
