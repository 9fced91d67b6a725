"""Hidden checks and controls of exercise 09.5."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.inductor import config_experiment as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, HiddenPart
from autograder.host.kinds.value import ValueAnswer


def _larger(answer: ValueAnswer, draw: Draw) -> None:
    """Check that larger programs are measured as well."""
    programs = visible.drawn(draw, 50, 90)
    record, plan = visible.asked(answer, programs)
    visible.measured(record, visible.repeat(answer, plan, programs))


def _without_effect(answer: ValueAnswer, draw: Draw) -> None:
    """Check that, if the option has no effect, the hypothesis is unchanged and the verdict follows the numbers."""
    usual = visible.drawn(draw, 20, 30)
    plain = visible.without_effect(draw, usual)
    record, plan = visible.asked(answer, plain)
    numbers = visible.measured(record, visible.repeat(answer, plan, plain))
    if visible.asked(answer, usual)[1] != plan:
        raise CheckFailedError("Another program of that size brought another hypothesis; state it before you measure.")
    visible.require_verdict(record, plan, numbers)


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("larger programs", "other sizes", 0.5, _larger),
        Check("a hypothesis that can fail", "no effect", 1, _without_effect),
    ),
    controls=(
        ANSWERS.reference(5),
        ANSWERS.edited("compares with the first run", 4, ("number / least for", "number / moved[0] for")),
        ANSWERS.edited("settings without an effect", 3.5, ("'settings': [4, 1]", "'settings': [4, 5]")),
        ANSWERS.edited("hands no setting over", 3.5, (", config={plan['option']: setting}", "")),
        ANSWERS.edited("functions of C++", 3.5, ("[run.kernels for", "[run.cost.launches for")),
        ANSWERS.file("made up", 0),
        ANSWERS.file("the demonstration", 0),
    ),
)
