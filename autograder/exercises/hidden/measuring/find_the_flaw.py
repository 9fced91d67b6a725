"""Hidden checks and controls of exercise 02.1."""

from __future__ import annotations

from autograder.exercises.measuring import find_the_flaw as visible
from autograder.host.exercise import Check, Control, HiddenPart
from course_lib.timing import Flaw

REFERENCE = """
def mend(script):
    windows, inside = [], False
    for step in script:
        if step == "clock":
            inside = not inside
            if inside:
                windows.append([])
        elif inside and step.startswith("launch"):
            windows[-1].append(step)
    steps = ["draw"]
    for launch in dict.fromkeys(step for window in windows for step in window):
        steps += [launch, "use"]
    for window in windows:
        steps += ["draw", "sync", "clock"]
        for launch in window:
            steps += [launch, "use"]
        steps += ["sync", "clock"]
    return steps
"""
WAITS_ONLY = """
def mend(script):
    steps, inside = [], False
    for step in script:
        if step == "clock":
            inside = not inside
            if not inside:
                steps.append("sync")
        steps.append(step)
    return steps
"""

HIDDEN = HiddenPart(
    checks=(
        Check("earlier work that a window waits for", "waiting", 1.6, visible.mended([Flaw.EARLIER])),
        Check("one input for all windows", "inputs", 1.6, visible.mended([Flaw.CACHED], sizes=(1, 1, 1, 1))),
        Check(
            "several flaws at once, several programs a window",
            "several flaws",
            1.6,
            visible.mended([Flaw.UNFINISHED, Flaw.COMPILED, Flaw.CACHED, Flaw.DROPPED], sizes=(2, 1, 3, 2)),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 12),
        Control("waits at the end, and nothing else", WAITS_ONLY, 2),
        Control("a script without windows", "def mend(script):\n    return [s for s in script if s != 'clock']\n", 0),
        Control(
            "one program for all",
            "def mend(script):\n    return ['draw', 'launch gelu', 'use', 'sync'] + ['draw', 'sync', 'clock', "
            "'launch gelu', 'use', 'sync', 'clock'] * 3\n",
            0,
        ),
    ),
    right_here={"wrong in the first entry only": "it takes away the first draw, and an input is there without it"},
    equivalent={"line 13: [launch, 'use'] -> [launch]": "what is dropped is compiled all the same, which suffices"},
)
