"""Hidden checks and controls of exercise 09.5."""

from collections.abc import Mapping
from typing import Any

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.inductor import config_experiment as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, HiddenPart
from autograder.host.kinds.value import ValueAnswer


def _larger(answer: ValueAnswer, draw: Draw) -> None:
    """Check the whole record again with larger programs."""
    programs = visible.drawn(draw, 50, 90)
    record, plan = visible.asked(answer, programs)
    found = visible.repeat(answer, plan, programs)
    visible.require_numbers(record, found)
    visible.require_effect(found, plan)
    visible.require_verdict(record, plan, found)


def _without_effect(answer: ValueAnswer, draw: Draw) -> None:
    """Check that, if the option has no effect, the hypothesis is unchanged and the verdict follows the numbers."""
    usual = visible.drawn(draw, 20, 30)
    size = draw.integer(20, 60)
    # a product reads its operands from memory, so more than the least is moved, and no option changes that
    product = {"inputs": [{"shape": [size, size]}], "steps": [["sin", "%0"], ["mm", "%1", "%1"]]}
    plain: Mapping[str, Any] = dict.fromkeys(usual, product)
    record, plan = visible.asked(answer, plain)
    found = visible.repeat(answer, plan, plain)
    visible.require_numbers(record, found)
    if visible.asked(answer, usual)[1] != plan:
        raise CheckFailedError("Another program of that size brought another hypothesis; state it before you measure.")
    visible.require_verdict(record, plan, found)


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("larger programs", "other sizes", 1, _larger),
        Check("a hypothesis that can fail", "no effect", 1, _without_effect),
    ),
    controls=(
        ANSWERS.reference(5),
        ANSWERS.edited("compares with the first run", 4, ("number / least for number", "number / moved[0] for number")),
        ANSWERS.file("made up", 0),
        ANSWERS.file("the demonstration", 0),
    ),
)
