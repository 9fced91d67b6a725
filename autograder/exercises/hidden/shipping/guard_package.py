"""Hidden checks and controls of exercise 14.5."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.shipping.guard_package import Asked, guards
from autograder.host.exercise import Check, HiddenPart

ANSWERS = Answers(__name__)


def shared(asked: Asked) -> None:
    """Ask about sizes that are equal by promise, and about those that are not."""
    for size in (7, 8, 9):
        asked.fit(batch=size, length=size, columns=size)
        asked.fit(batch=size + 3)
    for number, at in ((1, 0), (1, 1), (2, 0)):
        call = asked.refuse(f"dimension {at} of input {number} differs from another one of the same symbol")
        call[number]["shape"][at] = 20 if call[number]["shape"][at] != 20 else 21


def strides(asked: Asked) -> None:
    """Ask about tensors that lie in memory in another order."""
    asked.fit()
    asked.fit()
    for number in range(3):
        asked.refuse(f"input {number} is not contiguous")[number]["swapped"] = True


def ends(asked: Asked) -> None:
    """Ask about the ends of each range."""
    for name, (low, high) in asked.promise.ranges.items():
        asked.fit(**{name: low})
        asked.fit(**{name: high or 5000})
        asked.refuse(f"{name} of {low - 1} where {low} is the least", **{name: low - 1})
        if high:
            asked.refuse(f"{name} of {high + 1} where {high} is the largest", **{name: high + 1})


def counts(asked: Asked) -> None:
    """Ask about other numbers of inputs and of dimensions."""
    asked.fit()
    asked.fit()
    asked.refuse("an input is missing").pop()
    call = asked.refuse("there is an input too many")
    call.append(dict(call[2]))
    for number in (0, 2):
        asked.refuse(f"input {number} has a dimension too many")[number]["shape"].append(1)
        asked.refuse(f"input {number} has a dimension too few")[number]["shape"].pop()


HIDDEN = HiddenPart(
    checks=(
        Check(
            "sizes that belong together",
            "equal sizes",
            1,
            guards(("Dimensions with the same symbol have the same size.", shared, {"lengths": True})),
        ),
        Check("strides", "strides", 1, guards(("A package reads memory in the example's order.", strides, {}))),
        Check(
            "the ends of each range",
            "ranges",
            0.5,
            guards(
                ("Each symbol has its range.", ends, {"lengths": True}),
                ("A range without an end has no largest size.", ends, {"largest": False}),
            ),
        ),
        Check("inputs and dimensions", "counts", 0.5, guards(("Their number is fixed.", counts, {}))),
    ),
    controls=(
        ANSWERS.reference(6),
        *ANSWERS.styles(6),
        ANSWERS.file("the program's own guards", 2),
        ANSWERS.file("the library's check", 2.5),
        ANSWERS.edited("sizes for all calls", 0, ("sizes = {}", "pass"), ("promised = {", "sizes = {}; promised = {")),
        ANSWERS.edited("another error", 0, ("raise ValueError(f'{name}", "raise TypeError(f'{name}")),
        ANSWERS.edited("parameters are inputs", 0, ("program.graph_signature.user_inputs", "list(promised)")),
        ANSWERS.edited("no name", 5.5, ("{name} does not fit: ", "a tensor does not fit: ")),
        ANSWERS.edited("all names", 5.5, ("{name} does not fit: ", "one of {names} does not fit: ")),
        ANSWERS.edited(
            "the tensors in another order", 0.5, ("return package(*inputs)", "return package(*reversed(inputs))")
        ),
        ANSWERS.edited("the package alone", 0, ("return run", "return package")),
        ANSWERS.edited("no dtypes", 5, ("tensor.dtype != value.dtype or ", "")),
        ANSWERS.edited("no strides", 5, (" or (not tensor.is_contiguous())", "")),
        ANSWERS.edited("no range", 4.5, ("(found.lower, found.upper)", "(0, 9999)")),
        ANSWERS.edited("no equal sizes", 5, ("and sizes.setdefault(name, size) == size", "")),
        ANSWERS.edited("ends excluded", 4.5, ("(found.lower, found.upper)", "(found.lower + 1, found.upper - 1)")),
        ANSWERS.edited(
            "no number of inputs",
            5.5,
            ("len(inputs) != len(names)", "False"),
            ("names, inputs, strict=True", "names, inputs"),
        ),
        ANSWERS.edited(
            "no number of dimensions",
            5.5,
            (" or tensor.dim() != value.dim()", ""),
            ("value.shape), strict=True", "value.shape)"),
        ),
    ),
)
