"""Exercise 11.3: say in which of Inductor's hooks a pattern meets a product with a sum.

The host compiles each program up to the last hook and looks into the graph that every hook sees.
"""

from collections.abc import Callable, Sequence
from itertools import product

from autograder.exercises.questions import Question, kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer
from autograder.host.point_shares import share_among

HOOKS = (  # those of course_lib.inductor_passes, which imports Inductor
    "pre_grad_custom_pass",
    "joint_custom_pre_pass",
    "joint_custom_post_pass",
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
)

known = kept(__name__, "known")
TORCH, MM, ADDMM = "matmul, +", "mm, add", "addmm"
SUMS = ("{x} @ {w} + {b}", "{b} + {x} @ {w}")
IN_PLACE = ("({x} @ {w}).add_({b})",)
LINEAR = ("F.linear({x}, {w}.T, {b})",)
NAMES = {
    "x": ("x", "h", "rows", "tokens", "batch", "hidden", "inputs", "states"),
    "w": ("w", "u", "weight", "kernel", "matrix", "factor", "table", "heads"),
    "b": ("b", "c", "bias", "shift", "offset", "extra", "constant", "prior"),
}
AFTER = ("", ".relu()", ".tanh()", ".exp()", ".sigmoid()", ".abs()")
ROUNDS = 3  # programs of each rank, for each pattern

Asked = tuple[Question, str, str]
"""A question, the form of its sum, and what is done with it."""


def drawn(draw: Draw, form: str, rank: int, pattern: str, *, read_again: bool, hooks: Sequence[str]) -> Asked:
    """Draw the names in a program of a form, and what is done with the sum."""
    after = draw.choice(AFTER)
    spelled = f"({form}){after}" if after and " + " in form else form + after
    names = {role: draw.choice(words) for role, words in NAMES.items()}
    question: Question = {"spelling": spelled.format(**names), "rank": rank, "read_again": read_again}
    question |= {"pattern": pattern, "hooks": [hook for hook in HOOKS if hook in hooks]}
    return question, form, after


def of(forms: Sequence[str], patterns: Sequence[str], *, read_again: bool = False) -> Callable[[Draw], list[Asked]]:
    """Return a function that draws questions with every pattern and both ranks, some of them about a few hooks only.

    With each pattern and rank one question is about all hooks, so no single answer is right for a whole check.
    """

    def questions(draw: Draw) -> list[Asked]:
        asked = []
        for rank, pattern, turn in product((2, 3), patterns, range(ROUNDS)):
            hooks = draw.sample(HOOKS, draw.integer(2, 4)) if turn else HOOKS
            asked.append(drawn(draw, draw.choice(forms), rank, pattern, read_again=read_again, hooks=hooks))
        return draw.sample(asked, len(asked))

    return questions


def places(questions: Callable[[Draw], Sequence[Asked]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer is right about every question, so that one answer for all earns nothing."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        share_among(questions(draw), lambda asked: _require(answer, *asked), noun="questions", together=True)

    return run


def _require(answer: ValueAnswer, asked: Question, form: str, after: str) -> None:
    found, about = answer.ask(asked), known(asked, form, after)
    told = "; something else reads the product, too" if asked["read_again"] else ""
    where = f"For {asked['spelling']} with a product of rank {asked['rank']}{told}, the pattern `{asked['pattern']}`"
    if not isinstance(found, list) or not all(isinstance(hook, str) for hook in found):
        raise CheckFailedError(f"{where}: return a list of names of hooks, empty if no hook sees the pattern.")
    if sorted(found) != sorted(about["right"]):
        why = named_mistake(sorted(found), about["wrong"])
        raise CheckFailedError(f"{where} is seen in {contrasted(found, about['right'])}. {why}".strip())


EXERCISE = Exercise(
    title="Place the pass",
    kind=Kind.VALUE,
    entry_point="hooks_that_see",
    points=8,
    masked=("course_lib.inductor_passes", "torch._dynamo", "torch._inductor"),  # they would compile the program
    hints=(
        "Two graphs tell nearly all: before autograd there are functions of torch, behind it operators of ATen.",
        "`F.linear` becomes addmm at once. `x @ w + b` becomes mm and add, and one of Inductor's own passes, between "
        "the last two hooks, makes an addmm of them, if it may.",
        "It may if mm stands directly before add and nobody else reads mm. With x of rank 3 a view stands between.",
    ),
    checks=(
        Check("`x @ w + b` as mm and add", "mm and add", 1.5, places(of(SUMS, [MM]))),
        Check("`x @ w + b` as addmm", "addmm", 1.5, places(of(SUMS, [ADDMM]))),
        Check("patterns of torch functions", "torch functions", 1.5, places(of(SUMS, [TORCH]))),
    ),
)
