"""Operators that an answer made of its own Triton kernels: their text, found in the answer and checked.

A graph comes back with the names of what its own operators are made of. The host looks these names up among the
functions of the answer's text, and checks the text of these and of all that they name. What such an operator computes
follows from the checked text alone, so the names need not be believed.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from autograder.host.artifacts.kernel_source import checked_kernels
from autograder.host.artifacts.kernel_writing import KernelRefusedError
from autograder.host.source_text import UnreadableSourceError, parsed
from autograder.protocol.requests.answers import OwnOperator
from autograder.protocol.requests.loads import Part
from course_lib.graph.data.targets import OWN

_WORD = "[A-Za-z_][A-Za-z0-9_]*"
_NAME, _QUALIFIED = re.compile(_WORD), re.compile(f"{_WORD}::{_WORD}")


class OperatorRefusedError(Exception):
    """The graph's own operators are not allowed; the message is for the student."""


@dataclass(frozen=True)
class OwnOperators:
    """The operators of an answer's own, and the checked texts of their kernels and launchers."""

    declared: tuple[OwnOperator, ...] = ()
    kernels: tuple[Part, ...] = ()

    def stand_ins(self) -> dict[str, Callable[..., Any]]:
        """Return a function in the place of each operator, by the name by which a graph calls it."""
        return {f"{OWN}{each.name}": _stand_in(number) for number, each in enumerate(self.declared)}

    def names(self) -> Mapping[object, str]:
        """Return the names of the operators by their stand-ins."""
        return {function: name for name, function in self.stand_ins().items()}


_STAND_INS: list[Callable[..., Any]] = []


def _stand_in(number: int) -> Callable[..., Any]:
    """Return the stand-in of this number, the same one each time."""
    while len(_STAND_INS) <= number:

        def own_operator(*args: object) -> NoReturn:
            raise AssertionError("the host runs no graph of an answer")

        own_operator.__name__ = f"own_operator_{len(_STAND_INS)}"
        _STAND_INS.append(own_operator)
    return _STAND_INS[number]


def checked_operators(declared: Sequence[OwnOperator], texts: Mapping[str, str] | None) -> OwnOperators:
    """Return the operators with the checked texts of their launchers; `texts` is None where none are allowed.

    Raises `OperatorRefusedError`.
    """
    if not declared:
        return OwnOperators()
    for each in declared:
        _check_names(each)
    if texts is None:
        raise OperatorRefusedError(
            f"it calls `{declared[0].name}`, an operator of the answer's own; here a graph calls operators of PyTorch "
            "and course_lib only."
        )
    for name, count in Counter(each.name for each in declared).items():
        if count > 1:
            raise OperatorRefusedError(f"two of its own operators are called `{name}`; give each its own name.")
    launchers = [name for each in declared for name in (each.forward, each.backward)]
    kernels = {name: kernel_text(text, launchers) for name, text in texts.items()}
    try:
        checked = checked_kernels(kernels)
    except KernelRefusedError as error:
        raise OperatorRefusedError(
            f"it calls operators of the answer's own, whose kernels are refused. {error}"
        ) from None
    for name in launchers:
        if name not in checked.launchers:
            raise OperatorRefusedError(
                f"the launcher `{name}` of an own operator is no function at the left margin of the answer's cell. "
                "Define it there, without a decorator."
            )
    return OwnOperators(tuple(declared), tuple(Part(*each) for each in checked.parts.items()))


def _check_names(operator: OwnOperator) -> None:
    names = (operator.forward, operator.backward, *operator.results, *operator.keeps, *operator.gradients)
    if not _QUALIFIED.fullmatch(operator.name) or not all(map(_NAME.fullmatch, names)):
        raise OperatorRefusedError(
            'an own operator, its launchers or its tensors have a name that is none; expected "namespace::name", and '
            "names of letters, digits and underscores."
        )


def kernel_text(text: str, launchers: Sequence[str]) -> str:
    """Return the text with only the statements that these functions need, each in its line, and all others blank.

    >>> kernel_text("import os\\nBLOCK = 4\\ndef copy(x):\\n    return BLOCK\\n", ["copy"])
    '\\nBLOCK = 4\\ndef copy(x):\\n    return BLOCK'

    A statement is needed if it defines one of the names, or a name that a needed one uses. Raises
    `OperatorRefusedError` for a text that cannot be read.
    """
    try:
        tree = parsed(text)
    except UnreadableSourceError as error:
        raise OperatorRefusedError(f"the answer's cell cannot be read: {error}.") from None
    defining: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _defined(statement):
            defining.setdefault(name, []).append(statement)
    needed: dict[int, ast.stmt] = {}  # each statement once, however many names it defines
    waiting = list(launchers)
    while waiting:
        for statement in defining.pop(waiting.pop(), ()):
            if id(statement) not in needed:
                needed[id(statement)] = statement
                waiting += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    kept = {line for statement in needed.values() for line in _lines(statement)}
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # those that the parser counts
    return "\n".join(line if number in kept else "" for number, line in enumerate(lines, start=1)).rstrip("\n")


def _defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the left margin defines as a function or a constant."""
    if isinstance(statement, ast.FunctionDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _lines(statement: ast.stmt) -> range:
    decorators = statement.decorator_list if isinstance(statement, ast.FunctionDef) else []
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    return range(first, (statement.end_lineno or first) + 1)
