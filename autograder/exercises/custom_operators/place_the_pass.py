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
SPELLINGS = ("x @ w + b", "(x @ w).add_(b)", "F.linear(x, w.T, b)")


def question(spelling: str, rank: int, pattern: str, read_again: bool = False) -> Question:
    """Return the question about one program; `read_again` says that something else reads the product, too."""
    return {"spelling": spelling, "rank": rank, "read_again": read_again, "pattern": pattern, "hooks": list(HOOKS)}


def of(spellings: Sequence[str], patterns: Sequence[str], again: Sequence[bool] = (False,)) -> list[Question]:
    """Return the questions of all combinations with both ranks; a linear layer's product cannot be read again."""
    combined = product(spellings, (2, 3), patterns, again)
    return [question(*parts) for parts in combined if not (parts[3] and "linear" in parts[0])]


def places(questions: Sequence[Question]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer is right about every question, so that one answer for all earns nothing."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        asked_in_turn = draw.sample(questions, len(questions))
        share_among(asked_in_turn, lambda asked: _require(answer, asked), noun="questions", together=True)

    return run


def _require(answer: ValueAnswer, asked: Question) -> None:
    found, about = answer.ask(asked), known(asked)
    told = "; something else reads the product, too" if asked["read_again"] else ""
    where = f"For {asked['spelling']} with x of rank {asked['rank']}{told}, the pattern `{asked['pattern']}`"
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
        Check("`x @ w + b` as mm and add", "mm and add", 1.5, places(of(SPELLINGS[:1], [MM]))),
        Check("`x @ w + b` as addmm", "addmm", 1.5, places(of(SPELLINGS[:1], [ADDMM]))),
        Check("patterns of torch functions", "torch functions", 1.5, places(of(SPELLINGS[:1], [TORCH]))),
    ),
)
