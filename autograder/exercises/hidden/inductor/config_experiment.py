"""Hidden checks and controls of exercise 09.5."""

from __future__ import annotations

from typing import Any

from autograder.exercises.inductor import config_experiment as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Control, HiddenPart
from autograder.host.kinds.value import ValueAnswer


def _larger(answer: ValueAnswer, draw: Draw) -> None:
    """Everything once more, with larger programs."""
    programs = visible.drawn(draw, 50, 90)
    record, plan = visible.asked(answer, programs)
    found = visible.repeat(answer, plan, programs)
    visible.require_numbers(record, found)
    visible.require_effect(found, plan)
    visible.require_verdict(record, plan, found)


def _without_effect(answer: ValueAnswer, draw: Draw) -> None:
    """Where no option matters: the hypothesis stands, and the verdict follows the numbers."""
    usual = visible.drawn(draw, 20, 30)
    matrix = {"shape": [draw.integer(20, 60), draw.integer(20, 60)]}
    plain: dict[str, Any] = {name: {"inputs": [matrix], "steps": [["mul", "%0", 2.0]]} for name in usual}
    record, plan = visible.asked(answer, plain)
    found = visible.repeat(answer, plan, plain)
    visible.require_numbers(record, found)
    if visible.asked(answer, usual)[1] != plan:
        raise CheckFailedError("Another program of that size brought another hypothesis; state it before you measure.")
    visible.require_verdict(record, plan, found)


REFERENCE = '''
PROGRAM, OPTION, SETTINGS = "totals", "realize_reads_threshold", [4, 100]
HYPOTHESIS = {"kernels": "fewer", "bytes": "fewer"}
BECAUSE = "A sum of many inputs is written to memory once it reads more than the threshold; above it nothing is."


def direction(first, second):
    return "more" if second > first else "fewer" if second < first else "same"


def experiment(question):
    """Measure one program at two settings of one option, and say whether the hypothesis holds."""
    program, inputs = program_from_steps(question["programs"][PROGRAM])
    runs = [scheduled(program, inputs, config={OPTION: setting}) for setting in SETTINGS]
    kernels = [run.kernels for run in runs]
    moved = [run.cost.bytes_moved for run in runs]
    least = sum(t.nbytes for t in (*inputs, program(*inputs)))
    seen = {"kernels": direction(*kernels), "bytes": direction(*moved)}
    return {
        "program": PROGRAM,
        "option": OPTION,
        "settings": SETTINGS,
        "hypothesis": HYPOTHESIS,
        "because": BECAUSE,
        "kernels": kernels,
        "bytes": moved,
        "c4": [number / least for number in moved],
        "verdict": "confirmed" if seen == HYPOTHESIS else "refuted",
    }
'''
MADE_UP = '''
def experiment(question):
    """Numbers of the right form that nobody measured."""
    return {
        "program": "totals",
        "option": "realize_reads_threshold",
        "settings": [4, 100],
        "hypothesis": {"kernels": "fewer", "bytes": "fewer"},
        "because": "It is what one would expect here.",
        "kernels": [2, 1],
        "bytes": [84480, 69120],
        "c4": [1.22, 1.0],
        "verdict": "confirmed",
    }
'''
DEMONSTRATION = MADE_UP.replace('"totals"', '"softmax"').replace('"realize_reads_threshold"', '"max_fusion_size"')

HIDDEN = HiddenPart(
    checks=(
        Check("larger programs", "other sizes", 1, _larger),
        Check("a hypothesis that can fail", "no effect", 1, _without_effect),
    ),
    controls=(
        Control("reference", REFERENCE, 5),
        Control("made up", MADE_UP, 0),
        Control("the demonstration", DEMONSTRATION, 0),
    ),
)
