"""Mutants of a solution: one small edit each, such as a tired author makes.

    >>> [str(m) for m in mutants("def f(a, b):\\n    return a + b\\n")]
    ['line 2: a + b -> a - b', 'line 2: return a + b -> return None']

A check that passes for a mutant does not look where the edit is. Edits of docstrings are left out; others that change
nothing are named in `HiddenPart.equivalent`. The text is parsed, never run here.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_DELETED = (ast.Assign, ast.AugAssign, ast.Expr, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Mutant:
    """A changed solution."""

    line: int  # of the original
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.before} -> {self.after}"


def mutants(solution: str) -> list[Mutant]:
    """All mutants of ``solution``, in the order of its lines, each once and without docstrings."""
    statements = _without_docstrings(solution).body
    texts = [ast.unparse(statement) for statement in statements]
    found: dict[str, Mutant] = {}
    for number, statement in enumerate(statements):
        alone = ast.Module([statement], [])
        for node, put in _places(alone):
            for after in _changes(node):
                put(after)
                changed = ast.unparse(alone)
                put(node)
                text = "\n".join([*texts[:number], changed, *texts[number + 1 :]]) + "\n"
                if text not in found and changed != texts[number]:
                    found[text] = Mutant(_line(node), _short(node), _short(after), text)
    return sorted(found.values(), key=lambda m: (m.line, m.before, m.after))


def _without_docstrings(solution: str) -> ast.Module:
    tree = ast.parse(solution)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, Callable[[ast.AST], None]]]:
    """Every node below ``tree``, with what puts another one in its place."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if isinstance(value, ast.AST):
                yield value, partial(setattr, parent, name)
            elif isinstance(value, list):
                for at, item in enumerate(value):
                    if isinstance(item, ast.AST):
                        yield item, partial(value.__setitem__, at)


def _line(node: ast.AST) -> int:
    place = node.iter if isinstance(node, ast.comprehension) else node
    return int(getattr(place, "lineno", 0))


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of one node."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in _SWAPS:
        yield _with(node, op=_SWAPS[type(node.op)]())
    if isinstance(node, ast.BoolOp):
        yield from node.values
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        yield _with(node, ops=[_SWAPS[type(node.ops[0])](), *node.ops[1:]])
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    if isinstance(node, ast.Constant):
        yield from _other_constants(node.value)
    yield from _fewer(node)
    yield from _statements(node)


def _other_constants(value: object) -> Iterator[ast.AST]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str):
        yield ast.Constant(value + "_")


def _fewer(node: ast.AST) -> Iterator[ast.AST]:
    """Calls with an argument less, comprehensions with a condition less, collections with an element less."""
    if isinstance(node, ast.Call):
        if node.args:
            yield _with(node, args=node.args[:-1])
        for i in range(len(node.keywords)):
            yield _with(node, keywords=[*node.keywords[:i], *node.keywords[i + 1 :]])
    if isinstance(node, ast.comprehension) and node.ifs:
        yield _with(node, ifs=node.ifs[:-1])
    if isinstance(node, ast.Set | ast.Tuple | ast.List) and len(node.elts) > 1 and not _is_target(node):
        for i in range(len(node.elts)):
            yield _with(node, elts=[*node.elts[:i], *node.elts[i + 1 :]])
    if isinstance(node, ast.Slice) and node.step is not None:
        yield _with(node, step=None)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, _DELETED) and not _is_docstring(node):
        yield ast.Pass()
    if isinstance(node, ast.Return) and node.value is not None:
        yield ast.Return(ast.Constant(None))
    if isinstance(node, ast.If | ast.While):
        yield _with(node, test=ast.Constant(False))
    if isinstance(node, ast.If):
        yield _with(node, test=ast.Constant(True))


def _is_target(node: ast.Set | ast.Tuple | ast.List) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _short(node: ast.AST) -> str:
    """The first line of a node as source."""
    if isinstance(node, ast.comprehension):
        node = ast.ListComp(ast.Name("…"), [node])
    if isinstance(node, ast.Slice):
        node = ast.Subscript(ast.Name("…"), node)
    return ast.unparse(node).split("\n")[0]
