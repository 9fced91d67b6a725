"""Hidden checks and controls of exercise 10.6."""

from typing import Any

from autograder.exercises.backends.find_the_bad_passes import counted, finds, pipeline
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)

ONE_BY_ONE = """
def next_step(question):
    passes, seen = question['passes'], {frozenset(names): holds for names, holds in question['seen']}
    bad = []
    for _ in passes:
        for count in range(1, len(passes) + 1):
            tried = list(dict.fromkeys([*passes[:count], *bad]))
            if frozenset(tried) not in seen:
                return {'verify': tried}
            if not seen[frozenset(tried)]:
                bad = [passes[count - 1], *bad]
                break
        else:
            return {'bad': []}
        if frozenset(bad) not in seen:
            return {'verify': bad}
        if not seen[frozenset(bad)]:
            return {'bad': bad}
    return {'bad': bad}
"""
EACH_ALONE = """
def next_step(question):
    for names, holds in question['seen']:
        if not holds:
            return {'bad': names}
    left = question['passes'][len(question['seen']):]
    return {'verify': left[:1]} if left else {'bad': []}
"""
LINE = "def next_step(question):\n    return {}\n"

CONSTANTS = {
    "nothing is bad": "{'bad': []}",
    "all are bad": "{'bad': question['passes']}",
    "the first is bad": "{'bad': question['passes'][:1]}",
    "all are verified for ever": "{'verify': question['passes']}",
    "a text": "{'bad': question['passes'][0]}",
    "places": "{'bad': [0]}",
    "both at once": "{'verify': question['passes'], 'bad': []}",
}
SLIPS: tuple[Any, ...] = (
    ("the pass before", 0.8, True, ("wrong -= 1", "wrong -= 1 + (wrong > 1)")),
    (
        "the pass behind",
        0.7,
        True,
        ("bad = [passes[wrong], *bad]", "bad = [passes[min(wrong + 1, len(passes) - 1)], *bad]"),
    ),
    (
        "one pass is enough",
        3.5,
        True,
        ("while not seen", "while not bad and (not seen"),
        ("bad), True):", "bad), True)):"),
    ),
    (
        "two passes at most",
        6.5,
        False,
        ("while not seen", "while len(bad) < 2 and (not seen"),
        ("bad), True):", "bad), True)):"),
    ),
    ("what was found is not kept", 3.5, True, ("passes[:middle] + bad", "passes[:middle]")),
    ("halves of the whole only", 5.5, False, ("middle = (right + wrong) // 2", "middle = wrong - 1")),
    (
        "all are not verified first",
        7.5,
        False,
        ("not seen.get(frozenset(passes))", "not seen.get(frozenset(passes), False)"),
        ("if frozenset(passes) not in seen", "if not passes"),
    ),
    (
        "the result is not verified",
        8,
        True,
        ("        if frozenset(bad) not in seen:\n            return {'verify': bad}\n", ""),
    ),
)
"""Likely slips: name, marks, whether it gets at most so much, and edits of the reference."""

HIDDEN = HiddenPart(
    checks=(
        Check("three passes that are wrong together", "three passes", 1, finds(pipeline(10, 3), pipeline(14, 3))),
        Check(
            "few verifications of many passes",
            "verifications",
            0.5,
            counted(pipeline(200, 1), pipeline(180, 2), pipeline(128, 3)),
        ),
        Check(
            "the first, the last, and the only pass",
            "ends",
            1,
            finds(
                pipeline(1, 1),
                pipeline(7, 1, places=(0,)),
                pipeline(7, 1, places=(6,)),
                pipeline(8, 2, places=(0, 7)),
                pipeline(9, 2, places=(3, 4)),
            ),
        ),
        Check("several bad passes, each by itself", "several", 1, finds(pipeline(12, 1, 1), pipeline(16, 1, 2))),
    ),
    controls=(
        ANSWERS.reference(8),
        *ANSWERS.styles(8),
        Control("one by one", ONE_BY_ONE, 5.5),
        Control("each pass alone", EACH_ALONE, 2.5),
        *(ANSWERS.edited(name, marks, *edits, below=below) for name, marks, below, *edits in SLIPS),
        *(Control(name, LINE.format(step), 0) for name, step in CONSTANTS.items()),
    ),
)
