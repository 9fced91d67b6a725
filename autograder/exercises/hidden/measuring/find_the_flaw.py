"""Hidden checks and controls of exercise 02.1."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.measuring import find_the_flaw as visible
from autograder.host.exercise import Check, Control, HiddenPart
from course_lib.timing import Flaw

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("earlier work that a window waits for", "waiting", 2, visible.mended([Flaw.EARLIER])),
        Check("one input for all windows", "inputs", 1.5, visible.mended([Flaw.CACHED], sizes=(1, 1, 1, 1))),
        Check(
            "several flaws at once, several programs a window",
            "several flaws",
            1.5,
            visible.mended([Flaw.UNFINISHED, Flaw.COMPILED, Flaw.CACHED, Flaw.DROPPED], sizes=(2, 1, 3, 2)),
        ),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.file("waits at the end, and nothing else", 2),
        ANSWERS.edited(
            "one use for a window",
            10.5,
            ("+= [step, 'use']", "+= [step]"),
            ("*window, 'sync'", "*window, 'use', 'sync'"),
        ),
        Control("a script without windows", "def mend(script):\n    return [s for s in script if s != 'clock']\n", 0),
        Control(
            "one program for all",
            "def mend(script):\n    return ['draw', 'launch gelu', 'use', 'sync'] + ['draw', 'sync', 'clock', "
            "'launch gelu', 'use', 'sync', 'clock'] * 3\n",
            0,
        ),
    ),
    right_here={"wrong in the first entry only": "it takes away the first draw, and an input is there without it"},
    equivalent={"[launch, 'use'] -> [launch]": "what is dropped is compiled all the same, which suffices"},
)
