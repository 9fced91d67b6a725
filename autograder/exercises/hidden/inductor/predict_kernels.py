"""Hidden checks and controls of exercise 09.1."""

import itertools
from functools import lru_cache

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.inductor.predict_kernels import CALLS, SUMS, Chain, of_everything, predicts
from autograder.exercises.questions import Results
from autograder.host.checks.known_mistakes import Mistake
from autograder.host.exercise import Check, Control, HiddenPart
from course_lib.graph.generated_code import CompiledCost, lowered
from course_lib.models.chains import inputs_of, program_of


def counted(steps: Chain) -> dict[str, int]:
    """Return the number of generated kernels and of library calls of the program."""
    found = _lowered(tuple(steps))
    return {"kernels": found.launches, "calls": found.library_calls}


@lru_cache(maxsize=1024)
def _lowered(steps: Chain) -> CompiledCost:
    return lowered(program_of(steps), inputs_of(7))


WORK = ("sine", "bias", "residual", "in_place", "share")
ENDS = (*CALLS, "break")


def predicted(
    steps: Chain,
    *,
    work: tuple[str, ...] = WORK,
    ends: tuple[str, ...] = ENDS,
    called: tuple[str, ...] = CALLS,
    taken: tuple[str, ...] = SUMS,
    most: int = 1,
    free: tuple[str, ...] = (),
    stays: bool = False,
    always: tuple[str, ...] = (),
    last: bool = True,
    dead: tuple[str, ...] = (),
    each: bool = False,
    sums_called: bool = False,
    added: bool = False,
) -> dict[str, int]:
    """Return the numbers that a rule with these options gives; without options they are Inductor's.

    A product takes along `most` steps of `taken`, also behind what is in `free`: "keep", "transpose", or "two", which
    stands for two transposes that count as two. With `stays` a transpose before the product counts. One of `always`
    costs a kernel even if no work waits. In place of unused code runs `dead`. With `each` all work costs a kernel.
    """
    kernels, calls, waiting, room, turns = 0, 0, False, 0, 0
    for step in itertools.chain.from_iterable(dead if name == "unused" else (name,) for name in steps):
        calls += step in called
        if step in ends:
            kernels, waiting = kernels + (waiting or step in always), False
            room, turns = most if step == "product" else 0, turns if stays else 0
        elif room and step in taken and not (turns and "two" in free) and (turns % 2 == 0 or "transpose" in free):
            room, calls = room - 1, calls + sums_called
        elif step in work:
            kernels, waiting, room = kernels + each, not each, 0
        if step == "transpose":
            turns += 1
        elif step == "keep" and "keep" not in free:
            room = 0
    kernels += waiting and last
    return {"kernels": kernels + calls * added, "calls": calls}


SHARE_CALLED = (*CALLS, "share"), tuple(step for step in WORK if step != "share")
IN_PLACE_CALLED = (*CALLS, "in_place"), tuple(step for step in WORK if step != "in_place")
EVERYWHERE = ""
"""Place of a mistake that each check counts: it leaves nothing of the rule."""

MISTAKES = (
    Mistake(
        {"taken": ()},
        "A sum right after a product got a kernel; the library's addmm takes bias or residual along for nothing.",
        "kernels of straight",
    ),
    *(
        Mistake(
            {"taken": (taken,)},
            f"Only {taken} was taken along by a product; addmm takes either sum, bias or residual.",
            "kernels of straight",
        )
        for taken in SUMS
    ),
    Mistake(
        {"taken": (*SUMS, "sine")},
        "A sine after a product was free; a library call is closed, and only addmm's sum goes with it.",
        "kernels of straight",
    ),
    Mistake(
        {"taken": WORK},
        "Whatever follows a product was free; a library call is closed, and only addmm's sum goes with it.",
        "kernels of straight",
    ),
    Mistake(
        {"most": 2},
        "Two sums after a product were free; addmm takes one along, and the second is generated.",
        "kernels of straight",
    ),
    Mistake(
        {"free": ("transpose",)},
        "A sum was taken to be free after a transposed product; addmm takes it only if nothing else sees the product "
        "as it is: it must be neither kept nor lie transposed.",
        "kernels of straight",
    ),
    Mistake(
        {"free": ("keep",)},
        "A sum was taken to be free after a product that is kept; addmm takes it only if nothing else sees the product "
        "as it is: it must be neither kept nor lie transposed.",
        "kernels of of_everything",
    ),
    Mistake(
        {"free": ("keep", "transpose")},
        "A sum was taken to be free after any product; addmm takes it only if nothing else sees the product as it is: "
        "it must be neither kept nor lie transposed.",
        EVERYWHERE,
    ),
    Mistake(
        {"stays": True},
        "A transpose before a product was counted as one after it; the product's result lies as usual.",
        "kernels of straight",
    ),
    Mistake(
        {"free": ("two",)},
        "A sum after two transposes of a product got a kernel; two transposes undo each other.",
        "kernels of straight",
    ),
    Mistake(
        {"work": (*WORK, "transpose")},
        "A kernel was counted for a transpose; a view changes only how the next loop counts.",
        "kernels of straight",
    ),
    Mistake(
        {"last": False},
        "The last kernel is missing: work that still waits when the steps end is a kernel too.",
        "kernels of straight",
    ),
    Mistake(
        {"ends": CALLS},
        "A kernel was fused across a graph break; each graph is generated by itself.",
        "kernels of with_breaks",
    ),
    Mistake(
        {"always": ("break",)},
        "Every break cost a kernel; it only ends the work that waits, and may find none.",
        "kernels of with_breaks",
    ),
    Mistake(
        {"always": ENDS},
        "Every call or break cost a kernel; it only ends the work that waits, and may find none.",
        EVERYWHERE,
    ),
    Mistake(
        {"called": (*CALLS, "break")},
        "A break was counted as a library call; it ends a graph and calls nothing.",
        "calls of of_everything",
    ),
    Mistake({"called": ("product",)}, "A sort was not counted; it is a library call too.", "calls of few"),
    Mistake(
        {"called": ("product",), "ends": ("product", "break"), "work": (*WORK, "sort")},
        "A sort was taken to be generated; it is a library call, which ends the work that waits.",
        "calls of few",
    ),
    Mistake(
        {"called": SHARE_CALLED[0], "ends": (*SHARE_CALLED[0], "break"), "work": SHARE_CALLED[1]},
        "A reduction was counted as a call; Inductor writes sums itself, and the division goes into the same kernel.",
        "calls of few",
    ),
    Mistake(
        {"called": IN_PLACE_CALLED[0], "ends": (*IN_PLACE_CALLED[0], "break"), "work": IN_PLACE_CALLED[1]},
        "in_place was counted as a call; it is generated, like any other pointwise step.",
        "calls of few",
    ),
    Mistake(
        {"sums_called": True},
        "A sum that a product takes along was counted as a call; addmm is one call for both.",
        "calls of few",
    ),
    Mistake(
        {"dead": ("lost",), "called": (*CALLS, "lost")},
        "A product that nobody reads was counted as a call; Inductor leaves dead code out.",
        "calls of of_everything",
    ),
    Mistake(
        {"dead": ("sine",)},
        "Dead code was counted; what nobody reads is not generated, and stands between nothing.",
        "kernels of of_everything",
    ),
    Mistake(
        {"dead": ("product", "sine")},
        "Dead code was counted, with its product; what nobody reads is neither called nor generated.",
        "kernels of of_everything",
    ),
    Mistake(
        {"work": (*WORK, "keep")},
        "A kernel was counted for a kept value; the kernel or the call that computes it writes it.",
        "kernels of of_everything",
    ),
    Mistake(
        {"taken": (), "each": True},
        "A kernel was counted for each step; steps between two library calls share one kernel.",
        EVERYWHERE,
    ),
    Mistake(
        {"added": True},
        "Library calls were added to the kernels; kernels are those that Inductor generates.",
        EVERYWHERE,
    ),
)


def known(steps: Chain) -> Results:
    """Return the kernels and calls of the program, and those of each known mistake that has others."""
    right = counted(steps)
    wrong = {mistake.says: {**predicted(steps, **mistake.options), "counted": mistake.counted} for mistake in MISTAKES}
    return {**right, "wrong": {says: value for says, value in wrong.items() if not right.items() <= value.items()}}


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("the kernels of long programs", "long programs", 1.5, predicts("kernels", of_everything)),
        Check("the calls of long programs", "long programs", 2, predicts("calls", of_everything)),
    ),
    controls=(
        ANSWERS.reference(8),
        Control("one kernel, always", "def predict_kernels(steps):\n    return {'kernels': 1, 'calls': 1}\n", 0),
        ANSWERS.edited("dead code runs", 8, ("if s != 'unused'", "if s != 'none'"), below=True),
    ),
    equivalent={
        "kernels, calls, waiting, product_last, turned = (0, 0, False, False, False): False -> True": "a product turns "
        "nothing, and without a product it is not asked",
        "waiting or not absorbed -> not absorbed": "after a product, nothing waits",
    },
)
