"""Hidden checks and controls of exercise 14.3."""

from collections.abc import Callable

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.shipping.diff_graphs import (
    Case,
    Pair,
    finds,
    node,
    number,
    row,
)
from autograder.host.exercise import Check, HiddenPart

ANSWERS = Answers(__name__)
DEPTH = 40  # a key that holds the keys of its operands doubles with each


def moved(pair: Pair) -> None:
    """Give the graph after another order."""
    pair.moves = True


def operator(pair: Pair) -> None:
    """Call another operator."""
    pair.row("curved")["call"] = "neg.default"
    pair.begins(("curved",))


def exchanged_inputs(pair: Pair) -> None:
    """Let the product of the table read the other input."""
    pair.row("scaled")["args"][0] = node("x")
    pair.begins(("scaled",))


def other_numbers(pair: Pair) -> None:
    """Change one number of the tensor."""
    pair.row("table")["args"][0][1][2] += 1
    pair.begins(("table",))


def other_dtype(pair: Pair) -> None:
    """Hold the same numbers in another dtype."""
    pair.row("table")["args"][1] = "float64"
    pair.begins(("table",))


def whole_as_float(pair: Pair) -> None:
    """Add 2.0 instead of 2."""
    pair.row("shifted")["args"][1] = float(pair.row("shifted")["args"][1])
    pair.begins(("shifted",))


def one_as_true(pair: Pair) -> None:
    """Add True instead of 1."""
    pair.row("shifted", old=True)["args"][1], pair.row("shifted")["args"][1] = 1, True
    pair.begins(("shifted",))


def other_keyword(pair: Pair) -> None:
    """Change an argument that is given by its name."""
    pair.row("limited")["keywords"]["max"] += 1
    pair.begins(("limited",))


def keywords_in_another_order(pair: Pair) -> None:
    """Write the same keywords in another order."""
    limited = pair.row("limited")
    limited["keywords"] = dict(reversed(limited["keywords"].items()))


def twice_before(pair: Pair) -> None:
    """Compute in the graph before one more time what a node has computed; the product reads the copy."""
    _repeat(pair.before, "curved", "limited")
    pair.begins(("again",), ())


def twice_after(pair: Pair) -> None:
    """Compute it twice in the graph after."""
    _repeat(pair.after, "curved", "limited")
    pair.begins((), ("again",))


def _repeat(rows: list[dict[str, object]], key: str, operand: str) -> None:
    one = next(each for each in rows if each["name"] == key)
    rows.insert(rows.index(one) + 1, row("again", str(one["call"]), node(operand)))
    product = next(each for each in rows if each["name"] == "product")
    product["args"] = [node("joined"), node("again")]


def both_branches(pair: Pair) -> None:
    """Change a node in each branch, and one that reads them."""
    number(pair)
    operator(pair)
    pair.row("product")["args"].reverse()


def doubled(pair: Pair) -> None:
    """Double a value many times, and change what comes after."""
    for rows in (pair.before, pair.after):
        at, last = len(rows) - 1, "product"
        for step in range(DEPTH):
            rows.insert(at + step, row(f"doubled{step}", "add.Tensor", node(last), node(last)))
            last = f"doubled{step}"
        rows[-1]["args"] = [node(last)]
    pair.row("doubled30")["args"].append(3)
    pair.begins(("doubled30",))


def literal_in_place(value: int) -> Callable[[Pair], None]:
    """Return an edit that adds a number in place of an input; an answer may have this number for the input."""

    def edit(pair: Pair) -> None:
        for rows, operand in ((pair.before, node("y")), (pair.after, value)):
            rows.insert(-1, row("added", "add.Tensor", node("x"), operand))
        pair.begins(("added",))

    return edit


KEYWORDS = "Keywords belong to a call; their order does not."
TYPES = "1, 1.0 and True are equal in Python, and different arguments."
COPIES = "Of equal nodes the first ones have partners; the rest have none."
VALUES = "A constant is its numbers and its dtype, not its name."


def _case(about: str, rule: str, *edits: object) -> Case:
    return about, rule, edits  # type: ignore[return-value]  # edits, each a function of a pair


HIDDEN = HiddenPart(
    checks=(
        Check(
            "other orders, operators and operands",
            "nodes",
            1,
            finds(
                _case("graphs whose nodes moved", "The order of independent nodes says nothing.", moved),
                _case("another operator", "The operator belongs to a call.", operator, moved),
                _case("another input", "Inputs are known by their position.", exchanged_inputs, moved),
                *(
                    _case(
                        f"x + y and x + {value}",
                        "An operand is not a literal: mark it in its key.",
                        literal_in_place(value),
                    )
                    for value in range(4)
                ),
                _case("changes in both branches", "Each place counts where a difference begins.", both_branches),
            ),
        ),
        Check(
            "constants",
            "constants",
            0.5,
            finds(
                _case("a constant with other numbers", VALUES, other_numbers),
                _case("a constant of another dtype", VALUES, other_dtype),
            ),
        ),
        Check(
            "types and keywords",
            "arguments",
            0.5,
            finds(
                _case("a float in place of an int", TYPES, whole_as_float),
                _case("True in place of 1", TYPES, one_as_true),
                _case("another keyword argument", KEYWORDS, other_keyword),
                _case("keywords in another order", KEYWORDS, keywords_in_another_order),
            ),
        ),
        Check(
            "equal calls",
            "equal calls",
            0.5,
            finds(
                _case("a call that is made twice before", COPIES, twice_before),
                _case("a call that is made twice after", COPIES, twice_after),
            ),
        ),
        Check(
            "a deep graph",
            "depth",
            1,
            finds(_case("a value that is doubled 40 times", "A key must not hold the keys of its operands.", doubled)),
        ),
    ),
    controls=(
        ANSWERS.reference(8),
        *ANSWERS.styles(8),
        ANSWERS.file("the library's diff", 0),
        ANSWERS.file("pairs by the library", 0),
        ANSWERS.edited(
            "names sorted",
            8,
            ("return [node.name for node in missing if", "return [node.name for node in sorted(missing) if"),
        ),
        ANSWERS.edited("nothing differs", 0, ("return (starts(one, other), starts(other, one))", "return ([], [])")),
        ANSWERS.edited("one list", 0, ("return (starts(one, other), starts(other, one))", "return starts(one, other)")),
        ANSWERS.edited("inputs by name", 7, ("inputs.index(node)", "node.name")),
        ANSWERS.edited("constants by name", 7.5, ("what = (tensor.dtype, tensor.tolist())", "what = node.target")),
        ANSWERS.edited("constants by dtype", 7.5, ("tensor.tolist()", "0")),
        ANSWERS.edited("constants by their numbers", 7.5, ("tensor.dtype, tensor.tolist()", "0, tensor.tolist()")),
        ANSWERS.edited("no keywords", 7.5, ("sorted(node.kwargs.items())", "0")),
        ANSWERS.edited("keywords as they come", 7.5, ("sorted(node.kwargs.items())", "node.kwargs")),
        ANSWERS.edited("positions of nodes", 3, ("known[each])", "len(known))")),
        ANSWERS.edited("operands as bare numbers", 7, ("('node', known[each])", "known[each]")),
        ANSWERS.edited(
            "keys in keys",
            7,
            ("numbers.setdefault(repr((node.op, what, operands)), len(numbers))", "repr((node.op, what, operands))"),
        ),
        ANSWERS.edited("operators only", 2.5, ("('node', known[each])", "'node'")),
        ANSWERS.edited("all that differs", 0.5, ("if not missing.intersection(node.all_input_nodes)", "")),
        ANSWERS.edited(
            "a set of classes", 7.5, ("left[number] -= 1\n", "left[number] -= number not in others.values()\n")
        ),
        ANSWERS.edited("without the operator", 5, ("else node.target", "else node.op")),
    ),
)
