"""Make mutants of a solution: the same text with one small edit, such as an author's mistake.

>>> [str(m) for m in mutants("def f(a, b):\\n    return a + b\\n")]
['line 2: a + b -> a - b', 'line 2: return a + b -> return None']

A check that passes for a mutant does not test the edited place. Docstrings are not edited; edits that change nothing
are listed in `HiddenPart.equivalent`. The text is parsed and not run.
"""

import ast
import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial

_PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.BitOr, ast.BitAnd),
    (ast.And, ast.Or),
    (ast.Eq, ast.NotEq),
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
)
_SWAPS = {ast.FloorDiv: ast.Div, ast.Mod: ast.Mult} | {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
_DELETED = (ast.Assign, ast.AugAssign, ast.Expr, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Mutant:
    """A changed solution."""

    line: int  # of the original
    statement: str  # the innermost statement or lambda with the edit: its first line, without a colon
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.change}"

    @property
    def change(self) -> str:
        """Return the code before and after, as `ast.unparse` writes it."""
        return f"{self.before} -> {self.after}"

    def is_listed(self, changes: Collection[str]) -> bool:
        """Return whether `changes` contains the change, either alone or as `statement: change`."""
        return self.change in changes or f"{self.statement}: {self.change}" in changes


def mutants(solution: str) -> list[Mutant]:
    """Return all different mutants of `solution` in the order of its lines, without docstrings."""
    statements = _without_docstrings(solution).body
    texts = [ast.unparse(statement) for statement in statements]
    found: dict[str, Mutant] = {}
    for number, statement in enumerate(statements):
        alone = ast.Module([statement], [])
        for node, within, put in _places(alone, statement):
            for after in _changes(node):
                put(after)
                changed = ast.unparse(alone)
                put(node)
                text = "\n".join([*texts[:number], changed, *texts[number + 1 :]]) + "\n"
                if text not in found and changed != texts[number]:
                    found[text] = Mutant(_line(node), _short(within).rstrip(":"), _short(node), _short(after), text)
    return sorted(found.values(), key=lambda m: (m.line, m.before, m.after))


def _without_docstrings(solution: str) -> ast.Module:
    tree = ast.parse(solution)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _places(parent: ast.AST, within: ast.AST) -> Iterator[tuple[ast.AST, ast.AST, Callable[[ast.AST], None]]]:
    """Yield every node below `parent`, its innermost statement or lambda, and a function that replaces the node."""
    for name, value in ast.iter_fields(parent):
        items = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for at, item in items:
            if isinstance(item, ast.AST):
                inside = item if isinstance(item, ast.stmt | ast.Lambda) else within
                yield item, inside, partial(setattr, parent, name) if at is None else partial(value.__setitem__, at)
                yield from _places(item, inside)


def _line(node: ast.AST) -> int:
    place = node.iter if isinstance(node, ast.comprehension) else node
    return int(getattr(place, "lineno", 0))


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all replacements of one node."""
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
    """Yield calls without one argument, comprehensions without one condition, collections without one element."""
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
    """Return the first line of a node as source."""
    if isinstance(node, ast.comprehension):
        node = ast.ListComp(ast.Name("…"), [node])
    if isinstance(node, ast.Slice):
        node = ast.Subscript(ast.Name("…"), node)
    return ast.unparse(node).split("\n")[0]
