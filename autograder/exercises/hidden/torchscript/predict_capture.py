"""Hidden checks and controls of exercise 03.1."""

import functools
import warnings

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Known
from autograder.exercises.torchscript import predict_capture as visible
from autograder.exercises.torchscript.predict_capture import COLUMNS, Question, captured_by
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values
from course_lib.models.small_programs import SMALL_PROGRAMS


def _check(group: str, points: float) -> Check:
    asked = visible.questions(group, largest=40, rounds=3)
    return Check(f"{group}, up to forty rows", group, points, visible.predicted(asked))


def matrix(rows: int, total: int) -> torch.Tensor:
    """Return ones, with a first element that makes them add up to `total`."""
    x = torch.ones(rows, COLUMNS)
    x[0, 0] += total - x.sum()
    return x


def truth(question: Question) -> str:
    """Return what happens: the program is captured with its example, and called with the later input."""
    inputs = [question[when][key] for when in ("example", "later") for key in ("rows", "sum")]
    return _truth(question["program"], question["capture"], *inputs)


@functools.cache
def _truth(name: str, capture: str, rows: int, total: int, later_rows: int, later_total: int) -> str:
    program, later = SMALL_PROGRAMS[name], matrix(later_rows, later_total)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            captured = captured_by(program, capture, matrix(rows, total))
            found = captured(later)
        except Exception:  # compilers and operators raise many types
            return "fails"
        expected = program(later)
    return "agrees" if found.shape == expected.shape and torch.allclose(found, expected) else "differs"


def _traced(question: Question) -> bool:
    return bool(question["capture"] == "trace")


def _rows_differ(question: Question) -> bool:
    return bool(question["example"]["rows"] != question["later"]["rows"])


MISCONCEPTIONS = (
    Misconception(
        lambda q: "agrees" if _traced(q) and q["program"].startswith("branch") else "",
        "A trace asks nothing again: it keeps the branch that its example took, whatever the later input is.",
    ),
    Misconception(
        lambda q: (
            "fails" if _traced(q) and q["program"] in ("branch_on_value", "scale_by_item", "with_options") else ""
        ),
        "torch.jit.trace runs the program on real numbers, so an `if`, .item() and **options do not stop it.",
    ),
    Misconception(
        lambda q: "differs" if _traced(q) and q["program"] == "divide_by_rows" and _rows_differ(q) else "",
        "A size taken by `x.shape[0]` is recorded as an operator, and asked for again in every call.",
    ),
    Misconception(
        lambda q: "agrees" if _traced(q) and q["program"] == "divide_by_len" and _rows_differ(q) else "",
        "Python's `len` must return an int, which the trace cannot follow: it is a constant afterwards.",
    ),
    Misconception(
        lambda q: "differs" if _traced(q) and q["program"] == "add_up_rows" else "",
        "The loop was unrolled once per row of the example. Think of what x[5] does on an input of three rows.",
    ),
    Misconception(
        lambda q: "fails" if not _traced(q) and q["program"] not in ("through_numpy", "with_options") else "",
        "Scripting compiles branches, loops, sizes and .item(): this program is inside the language.",
    ),
    Misconception(
        lambda q: "differs" if _traced(q) else "",
        "A trace is wrong only where the later input takes another way, or needs another number, than its example.",
    ),
    Misconception(
        lambda q: "agrees" if not _traced(q) else "",
        "Scripting knows no numpy and no **options: the compiler refuses the source before anything runs.",
    ),
)


def known(question: Question) -> Known:
    """Return what happens in truth, and the known wrong predictions."""
    return {"right": truth(question), "wrong": wrong_values(question, MISCONCEPTIONS)}


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(_check("branches", 1), _check("rows", 1.5), _check("numbers outside torch", 1)),
    controls=(
        ANSWERS.reference(8),
        Control("always agrees", "def predict(question):\n    return 'agrees'\n", 0),
        Control("always fails", "def predict(question):\n    return 'fails'\n", 0),
        ANSWERS.edited(
            "more rows are the other branch",
            5.5,
            ("(example['rows'] > 4) == (later['rows'] > 4)", "same_rows or max(example['rows'], later['rows']) <= 4"),
        ),
        ANSWERS.edited(
            "sizes are frozen too",
            5,
            ("'divide_by_len': same_rows", "'divide_by_len': same_rows, 'divide_by_rows': same_rows"),
        ),
    ),
    right_here={"text": "an outcome is a text already"},
    equivalent={
        "example['sum'] > 0 -> example['sum'] >= 0": "no question has a sum of 0",
        "later['sum'] > 0 -> later['sum'] >= 0": "no question has a sum of 0",
        "later['rows'] > example['rows'] -> later['rows'] >= example['rows']": "equal rows never come there",
    },
)
