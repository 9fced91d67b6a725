"""Hidden checks and controls of exercise 14.5."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.shipping.guard_package import Asked, Promise, guards, refuse_beyond
from autograder.host.exercise import Check, HiddenPart

ANSWERS = Answers(__name__)


def shared(asked: Asked) -> None:
    """Ask about sizes that are equal by promise, and about those that are not."""
    asked.fit_twice()
    asked.fit()
    asked.fit(batch=10, length=10, columns=10)
    for _ in range(3):
        case = asked.refuse("")
        name = asked.draw.choice(("batch", "length"))
        number, at = asked.draw.choice([(n, d.index(name)) for n, d in enumerate(case.promise.dims) if name in d])
        shape = case.calls[0][number]["shape"]
        shape[at] = asked.draw.choice([size for size in range(10, 30) if size != shape[at]])
        case.wrong = f"dimension {at} of input {number} differs from another one of the same symbol"


def strides(asked: Asked) -> None:
    """Ask about tensors that lie in memory in another order."""
    asked.fit_twice()
    asked.fit()
    for number in range(3):
        asked.refuse(f"input {number} is not contiguous").calls[0][number]["swapped"] = True


def ends(asked: Asked) -> None:
    """Ask about the ends of each range."""
    asked.fit_twice()
    for end in (Promise.least, Promise.largest):
        promised = asked.new()
        asked.fit(promised, **{name: end(promised, name) for name in promised.ranges})
    for name, (_, largest) in asked.new().ranges.items():
        refuse_beyond(asked, name, above=largest is not None)


def counts(asked: Asked) -> None:
    """Ask about other numbers of inputs and of dimensions."""
    asked.fit_twice()
    asked.fit()
    asked.refuse("an input is missing").calls[0].pop()
    call = asked.refuse("there is an input too many").calls[0]
    call.append(dict(call[2]))
    for dims, change in ((2, "many"), (3, "few")):
        case = asked.refuse("")
        number = asked.draw.choice([n for n, each in enumerate(case.promise.dims) if len(each) == dims])
        shape = case.calls[0][number]["shape"]
        case.calls[0][number]["shape"] = [*shape, asked.draw.integer(5, 18)] if dims == 2 else shape[:-1]
        case.wrong = f"input {number} has a dimension too {change}"


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
        ANSWERS.file("the program's own guards", 2.5),
        ANSWERS.file("the library's check", 3),
        ANSWERS.edited(
            "sizes for all calls", 0.5, ("sizes = {}", "pass"), ("promised = {", "sizes = {}; promised = {")
        ),
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
