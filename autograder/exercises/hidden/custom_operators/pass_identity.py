"""Hidden checks and controls of exercise 11.4."""

from autograder.exercises.custom_operators.pass_identity import OPERATORS, Options, Pair, of_others, tells
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart


def another_order(draw: Draw, first: Options) -> list[Pair]:
    """Return two passes with the same operators in another order."""
    return [
        (
            "with the same operators in another order do the same",
            first,
            {**first, "operators": first["operators"][::-1]},
        )
    ]


def fewer_operators(draw: Draw, first: Options) -> list[Pair]:
    """Return passes for other operators, and for one of them."""
    one = {**first, "operators": first["operators"][:1]}
    return [*of_others(draw, first), ("for two operators and for one do different things", first, one)]


def another_print(draw: Draw, first: Options) -> list[Pair]:
    """Return two passes of which one prints."""
    return [("of which one prints give the same graph", first, {**first, "verbose": True})]


def more_operators(draw: Draw, first: Options) -> list[Pair]:
    """Return two passes of which one has an operator more."""
    third = next(name for name in OPERATORS if name not in first["operators"])
    longer = {**first, "operators": [*first["operators"], third]}
    return [("for two operators and for three do different things", first, longer)]


ANSWERS = Answers(__name__)
PRINTS = "what a pass prints is not graded"
OTHER_NAME = "any text is a name, if it differs where graphs differ"

HIDDEN = HiddenPart(
    checks=(
        Check("operators, in any order", "operators", 1.5, tells(another_order, fewer_operators)),
        Check("what does not change the graph", "print", 1.5, tells(another_print, more_operators)),
    ),
    controls=(
        ANSWERS.reference(8),
        *ANSWERS.styles(8),
        ANSWERS.edited(
            "a hash",
            8,
            (
                "f'BoundPass 1 {sorted(operators)} {limit!r}'",
                "__import__('hashlib').sha256(repr((sorted(operators), limit)).encode()).hexdigest()",
            ),
        ),
        ANSWERS.edited(
            "bytes", 8, ("f'BoundPass 1 {sorted(operators)} {limit!r}'", "repr((sorted(operators), limit)).encode()")
        ),
        ANSWERS.edited(
            "a tuple",
            8,
            ("f'BoundPass 1 {sorted(operators)} {limit!r}'", "('BoundPass', tuple(sorted(set(operators))), limit)"),
        ),
        ANSWERS.edited("the hex of the number", 8, ("{limit!r}", "{float(limit).hex()}")),
        ANSWERS.edited(
            "replaces all, then mends",
            8,
            (
                "for user in users:\n                    user.replace_input_with(node, bounded)",
                "node.replace_all_uses_with(bounded)\n                bounded.update_arg(0, node)",
            ),
        ),
        ANSWERS.edited(
            "asks the target",
            8,
            ("node.target.overloadpacket.__name__ not in operators", "str(node.target).split('.')[1] not in operators"),
        ),
        ANSWERS.edited("without the limit", 6, (" {limit!r}", "")),
        ANSWERS.edited("without the operators", 4, (" {sorted(operators)}", "")),
        ANSWERS.edited("the limit in two digits", 6, ("{limit!r}", "{limit:.2f}")),
        ANSWERS.edited("operators in their order", 6.5, ("{sorted(operators)}", "{operators}")),
        ANSWERS.edited("with what it prints", 6.5, ("{limit!r}", "{limit!r} {verbose}")),
        ANSWERS.edited("the number of operators", 5.5, ("{sorted(operators)}", "{len(operators)}")),
        ANSWERS.edited(
            "the name of the class", 2, ("f'BoundPass 1 {sorted(operators)} {limit!r}'", "type(self).__name__")
        ),
        ANSWERS.edited("the reader of the next only", 0, ("for user in users:", "for user in users[:0]:")),
        ANSWERS.edited("the clamp from 0", 0, ("(node, -limit, limit)", "(node, 0, limit)")),
        ANSWERS.edited("the first operator only", 0, ("not in operators", "!= operators[0]")),
        ANSWERS.edited(
            "the clamp before the operator", 0, ("graph.inserting_after(node)", "graph.inserting_before(node)")
        ),
        ANSWERS.edited("a text of the time", 2, ("f'BoundPass 1 {sorted(operators)} {limit!r}'", "repr(object())")),
        ANSWERS.edited("one name for all", 2, ("return f'BoundPass 1 {sorted(operators)} {limit!r}'", "return 'mine'")),
        ANSWERS.edited("no name", 2, ("return f'BoundPass 1 {sorted(operators)} {limit!r}'", "return None")),
        ANSWERS.edited("the name of the object", 2, ("{limit!r}'", "{limit!r} {id(self)}'")),
    ),
    right_here={
        "text": "the name is a text already",
        "empty values": "the pass has run, and earns its own points",
        "wrong in the first entry only": "it changes every uuid in the same way",
    },
    equivalent={
        "if verbose: if verbose: -> if True:": PRINTS,
        "if verbose: if verbose: -> if False:": PRINTS,
        "print('bounded', node.name) -> pass": PRINTS,
        "print('bounded', node.name) -> print('bounded')": PRINTS,
        "print('bounded', node.name): 'bounded' -> 'bounded_'": PRINTS,
        "' ' -> ' _'": OTHER_NAME,
        "'BoundPass 1 ' -> 'BoundPass 1 _'": OTHER_NAME,
    },
)
