"""Exercise 09.1: predict how often generated kernels are launched in a program, and how many library calls are left.

The programs are on one matrix. Inductor lowers the host's own programs during grading. For the steps see
`course_lib.models.chains`.
"""

from collections.abc import Callable
from typing import Any

from autograder.exercises.questions import kept
from autograder.host.checks.known_mistakes import explanations
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, same
from autograder.host.kinds.value import ValueAnswer
from course_lib.models.chains import LINES

Chain = list[str]

known = kept(__name__, "known")
CALLS = ("product", "sort")
SUMS = ("bias", "residual")
EITHER = ("sort", "transpose")  # never both: a sort copies a transposed input, a rule that no question asks for


def random_chain(draw: Draw, count: int, also: tuple[str, ...] = tuple(LINES)) -> Chain:
    """Return `count` random steps from `also`, never both a sort and a transpose."""
    left_out = draw.choice(EITHER)
    return [draw.choice([step for step in also if step != left_out]) for _ in range(count)]


def work(draw: Draw) -> Chain:
    """Return one to three generated steps that no product takes along."""
    return [draw.choice(("sine", "in_place", "share")) for _ in range(draw.integer(1, 3))]


def predicts(part: str, programs: Callable[[Draw], list[Chain]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's entry `part`, "kernels" or "calls", equals Inductor's for every program.

    A known mistake that explains all of the answer's numbers, and that another check counts, costs nothing here.
    """
    place = f"{part} of {programs.__name__}"  # by which a mistake names the check that counts it

    def run(answer: ValueAnswer, draw: Draw) -> None:
        asked = programs(draw)
        about = [known(steps) for steps in asked]
        found = [_number(answer.ask(steps), part) for steps in asked]
        differing = [at for at, each in enumerate(about) if not same(found[at], each[part])]
        wrong = [{says: (w[part], w["counted"]) for says, w in each["wrong"].items()} for each in about]
        made = explanations(found, [each[part] for each in about], wrong)
        if not differing or (made and not {place, ""} & set(made.values())):
            return
        at = differing[0]
        says = next((says for says, counted in made.items() if counted in (place, "")), "")
        told = contrasted(found[at], about[at][part], between="; Inductor says ")
        raise CheckFailedError(f"For {', '.join(asked[at])} {part} is {told}. {says}".strip())

    return run


def _number(found: Any, part: str) -> Any:
    if not isinstance(found, dict) or part not in found:
        raise CheckFailedError("predict_kernels returns a dict with the keys kernels and calls.")
    return found[part]


def few(draw: Draw) -> list[Chain]:
    """Return programs of one graph with one library call, with two, and random ones."""
    telling = [
        ["product", draw.choice(SUMS), *work(draw)],
        [*work(draw), "sort", *work(draw), "sort"],
        [*work(draw), "in_place", "share", *work(draw), "product"],
    ]
    return [*telling, *straight(draw)]


def straight(draw: Draw) -> list[Chain]:
    """Return programs of one graph without dead code; products, sums after them, and views occur."""
    draw = draw.shared("one graph")  # shared, because Inductor takes time for each program
    some = ("sine", "bias", "residual", "in_place", "share", "transpose", "product", "sort")
    first, second = draw.sample(SUMS, 2)
    telling = [
        [*work(draw), "share", "product", first, "sine"],
        ["product", first, "product", second, draw.choice(("product", "sort")), *work(draw)],
        ["product", "sine", "product"],
        ["bias", *work(draw), "product", "transpose", "product"],
        ["transpose", "product", draw.choice(SUMS), "product", *work(draw), "product"],
        [*work(draw), "product", "transpose", draw.choice(SUMS)],
        [*work(draw), "product", "transpose", "transpose", draw.choice(SUMS)],
        [*work(draw), "product", draw.choice(SUMS), draw.choice(SUMS)],
    ]
    return draw.sample([*telling, *(random_chain(draw, n, some) for n in (3, 5, 6, 7))], 12)


def with_breaks(draw: Draw) -> list[Chain]:
    """Return programs of several graphs."""
    some = ("sine", "bias", "share", "in_place", "transpose", "product", "break", "sort")
    telling = [
        [*work(draw), "break", *work(draw), "product"],
        ["product", "break", draw.choice(SUMS), *work(draw), "sort"],
    ]
    return [*telling, *(random_chain(draw, n, some) for n in (4, 6, 8))]


def of_everything(draw: Draw) -> list[Chain]:
    """Return long programs of all kinds of steps, including unused values and values that are also returned."""
    draw = draw.shared("everything")
    telling = [
        [*work(draw), "product", "keep", draw.choice(SUMS)],
        ["product", "unused", draw.choice(SUMS), "product", *work(draw)],
        ["transpose", "transpose", "bias", "product", "transpose", "transpose", draw.choice(SUMS)],
        ["unused", "product", "keep", "sort", *work(draw)],
        [*work(draw), "unused", "break", "product", "keep"],
    ]
    return [*telling, *(random_chain(draw, n) for n in (6, 7, 8, 9, 10, 12))]


EXERCISE = Exercise(
    title="Predict the kernels",
    kind=Kind.VALUE,
    entry_point="predict_kernels",
    points=8,
    # they would build the program, and lower it
    masked=("course_lib.models.chains", "course_lib.graph", "torch._dynamo", "torch._inductor"),
    hints=(
        "Leave out first what nobody reads. Which of the other steps are generated, which are library calls?",
        "Go through the steps and remember: does generated work wait, did a product come last, does it lie transposed?",
        "A library call or a break ends the waiting work: one launch if there was any. At the end, look once more.",
    ),
    checks=(
        Check("the calls of programs of one graph", "one graph", 1, predicts("calls", few)),
        Check("the kernels of programs of one graph", "one graph", 2, predicts("kernels", straight)),
        Check("the kernels of programs with breaks", "breaks", 1.5, predicts("kernels", with_breaks)),
    ),
)
