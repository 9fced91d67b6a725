"""Write the text of kernels and launchers from what the host understood of an answer's: no other text of it runs.

Only nodes and fields on the lists of `kernel_words` are copied, constants are computed here, and what is not copied is
not there: comments, options of `@triton.jit`, most annotations. Each statement keeps its line, so that errors name the
right one. Recursion goes as deep as a tree that came through the door for source text, at most 100 levels.
"""

import ast
import contextlib
import keyword
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.host.artifacts import kernel_words as words
from autograder.host.source_text import UnreadableSourceError, imports, is_main_guard, text_in_lines, tree_of, unparsed

CONSTEXPR, JIT = "tl.constexpr", "triton.jit"
LARGEST = 2**64  # absolute value of an integer among constants
MOST_SHIFT = 64  # bits of a shift, and exponent of an integer
PLAIN = (bool, int, float, str, type(None), type(...))
NUMBERS = (bool, int, float)
NAMED: Mapping[str, float] = {f"math.{name}": getattr(math, name) for name in ("e", "inf", "pi")}
_CALLS: Mapping[str, Callable[..., Any]] = {"float": float, "math.exp": math.exp, "math.sqrt": math.sqrt}
_UNARY: Mapping[type, Callable[[Any], Any]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_, ast.Invert: operator.invert,
}  # fmt: skip
_BINARY: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.BitAnd: operator.and_,
}  # fmt: skip


class KernelRefusedError(Exception):
    """The text leaves the small language; the message is for the student."""


def written(statements: Sequence[ast.stmt]) -> str:
    r"""Return a text that does what the statements of a module do, each in its line.

    >>> written(ast.parse("import triton\nA: print(3) = 2 * 64\n\ndef f(x, n: int) -> print(4):\n  return n  # n").body)
    '\nA = 128\n\ndef f(x, n: int):\n    return n'

    Raises `KernelRefusedError` for what is neither a kernel nor a launcher nor a constant, and for each node or field
    that these do not have.
    """
    tree, named = ast.Module([], []), dict(NAMED)
    for statement in statements:
        if isinstance(statement, ast.FunctionDef):
            tree.body.append(_Function(statement).copy())
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            tree.body.append(_constant_copy(statement, named))
        elif not (_does_nothing(statement) or is_main_guard(statement) or imports(statement, words.IMPORTS)):
            raise _not_here(statement)
    try:
        return text_in_lines(tree)
    except UnreadableSourceError as error:
        raise KernelRefusedError(f"The answer is not read: {error}.") from None


def constant(node: ast.expr, named: Mapping[str, Any] = NAMED) -> Any:
    """Return the value of a constant expression, whose integers stay below `LARGEST` at each step.

    `named` has the numbers that names stand for; no texts or tuples, which would grow with each name.

    >>> constant(ast.parse("-(1 << 10) / 4", mode="eval").body)
    -256.0

    Raises `ValueError` with the reason where there is no such value.
    """
    if isinstance(node, ast.Constant) and type(node.value) in PLAIN:
        return _bounded(node.value)
    if words.dotted(node) in named:
        return named[words.dotted(node)]
    if (call := _CALLS.get(words.called(node))) and not node.keywords:  # type: ignore[attr-defined]  # a call
        return _bounded(call(*(constant(each, named) for each in node.args)))  # type: ignore[attr-defined]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _bounded(_UNARY[type(node.op)](_number(node.operand, named)))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _number(node.left, named), _number(node.right, named)
        grows = isinstance(node.op, ast.LShift | ast.RShift | ast.Pow) and isinstance(left, int)
        if grows and isinstance(right, int) and abs(right) > MOST_SHIFT:
            raise ValueError(f"a shift or an exponent of more than {MOST_SHIFT}")
        return _bounded(_BINARY[type(node.op)](left, right))
    raise ValueError("it is computed from something other than numbers")


def _number(node: ast.expr, named: Mapping[str, Any]) -> Any:
    value = constant(node, named)
    if type(value) not in NUMBERS:
        raise ValueError("it is computed from something other than numbers")
    return value


def _bounded(value: Any) -> Any:
    if type(value) not in PLAIN or value != value:  # complex numbers, NaN
        raise ValueError("its value is no real number")
    if type(value) is int and abs(value) > LARGEST:
        raise ValueError("an integer beyond 64 bits")
    return value


def constexpr_value(node: ast.expr | None) -> ast.expr | None:
    """Return what `tl.constexpr(...)` is given; None for anything else."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords and unparsed(node.func) == CONSTEXPR:
        return node.args[0]
    return None


def _constant_copy(statement: ast.Assign | ast.AnnAssign, named: dict[str, float]) -> ast.stmt:
    """Return the statement with the value that the host computed, and keep a number under its names in `named`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    inner = constexpr_value(statement.value)
    is_constexpr = inner is not None or _known_annotation(getattr(statement, "annotation", None)) == CONSTEXPR
    value = statement.value if inner is None else inner
    if value is None or len(names) < len(targets):
        raise _not_here(statement)
    try:
        found = _value(value, named)
    except (ValueError, ArithmeticError, TypeError) as error:
        raise _not_here(statement, f" ({error})") from None
    for name in names:
        refuse_name(name, statement)
        named.pop(name, None)  # it may name a tuple from here on
    with contextlib.suppress(ValueError):
        named |= dict.fromkeys(names, _number(found, {}))
    whole = ast.Call(_expression(CONSTEXPR), [found], []) if is_constexpr else found
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store()) for name in names], whole), statement)


def _value(node: ast.expr, named: Mapping[str, Any]) -> ast.expr:
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_value(each, named) for each in node.elts], ast.Load())
    dtype = words.dotted(node)
    return _expression(dtype if dtype in words.DTYPES else unparsed(ast.Constant(constant(node, named))))


def _expression(text: str) -> ast.expr:
    """Return the tree of an expression that the host wrote."""
    return tree_of(text).body[0].value  # type: ignore[attr-defined]  # of an expression


def _not_here(statement: ast.stmt, why: str = "") -> KernelRefusedError:
    at = f"Line {statement.lineno} of the answer's cell"
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return KernelRefusedError(
            f"{at} has `{short(statement)}`. Remove it: `tl`, `triton` and `torch` are there, and nothing else is, so "
            "write `torch.Tensor`, `triton.cdiv`."
        )
    return KernelRefusedError(
        f"{at} is graded as a kernel's text, and `{short(statement)}` is neither a function nor a constant such as "
        f"`BLOCK = tl.constexpr(128)`{why}. Try things out in another cell."
    )


def _does_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _known_annotation(node: ast.expr | None) -> str:
    """Return the word that an annotation is, also as a text; empty for all that are not on the list."""
    text = unparsed(node).strip("'")
    return text if text in words.ANNOTATIONS else ""


class _Function:
    """One kernel or launcher, of which only what is on the lists is copied."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self._function = function
        self._kernel = bool(function.decorator_list)
        self._nodes = words.NODES if self._kernel else {**words.NODES, **words.OF_LAUNCHERS}

    def copy(self) -> ast.FunctionDef:
        """Return it with at most one decorator, and with annotations that are on the list."""
        function, decorators = self._function, self._function.decorator_list
        refuse_name(function.name, function)
        self._require_fields(function, ("name", "args", "body", "decorator_list", "returns"))
        if len(decorators) > 1 or not all(map(_is_jit, decorators)):
            raise KernelRefusedError(
                f"`{function.name}` has the decorator `@{short(decorators[0])}`; "
                "only `@triton.jit` is run here, without autotuning and heuristics. Choose the block in the launcher."
            )
        self._require_plain_defaults()
        if self._kernel:  # Triton looks for the name of a kernel in its text, by a pattern
            for name in (function.name, *(each.arg for each in words.parameters(function.args))):
                _require_ascii(name, function)
        args = self._copy(function.args)
        for new, old in zip(words.parameters(args), words.parameters(function.args), strict=True):
            if annotation := _known_annotation(old.annotation):
                new.annotation = _expression(annotation)
        jit = [ast.copy_location(_expression(JIT), each) for each in decorators]
        return ast.copy_location(ast.FunctionDef(function.name, args, self._copied(function.body), jit), function)

    def _require_plain_defaults(self) -> None:
        """Refuse a default that computes, or that a call could change for the next one."""
        args = self._function.args
        for default in (*args.defaults, *args.kw_defaults):
            if default is not None and not _is_plain(default):
                raise KernelRefusedError(
                    f"{self._at(default, 'has')} the default `{short(default)}`; a default is a number, a text, a "
                    "dtype, None, or the name of a constant."
                )

    def _copy(self, node: ast.AST) -> Any:
        """Return the node without all that is not on the lists."""
        if type(node) in words.SYMBOLS:
            return type(node)()
        node = self._simpler(node)
        self._require_known(node)
        fields = {field: self._copied(getattr(node, field, None)) for field in self._nodes[type(node)]}
        if isinstance(node, ast.AnnAssign):
            fields["annotation"] = _expression(CONSTEXPR)
        return ast.copy_location(type(node)(**fields, **_NEEDED.get(type(node), {})), node)

    def _copied(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._copied(each) for each in value]
        return self._copy(value) if isinstance(value, ast.AST) else value

    def _simpler(self, node: ast.AST) -> ast.AST:
        """Return the statement in whose form another one is written, which does the same here."""
        new, exc = node, getattr(node, "exc", None)  # what a statement raises
        if isinstance(node, ast.Expr) and (_does_nothing(node) or words.called(node.value) in words.FOR_THE_COMPILER):
            new = ast.Pass()
        elif isinstance(node, ast.AnnAssign) and _known_annotation(node.annotation) != CONSTEXPR:
            if node.value is None:
                raise KernelRefusedError(f"{self._at(node, 'has')} `{short(node)}` without a value.")
            new = ast.Assign([node.target], node.value)
        elif not self._kernel and (words.called(exc) or unparsed(exc)) in words.ERRORS:
            args, keywords = (getattr(exc, name, []) for name in ("args", "keywords"))
            if len(args) < 2 and not keywords and getattr(node, "cause", None) is None:
                new = ast.Assert(ast.Constant(False), args[0] if args else None)
        elif not self._kernel and isinstance(node, ast.FunctionDef) and not node.decorator_list:
            body = [each for each in node.body if not _does_nothing(each)]
            if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
                new = ast.Assign([ast.Name(node.name, ast.Store())], ast.Lambda(node.args, body[0].value))
        return ast.copy_location(new, node) if new is not node else node

    def _require_known(self, node: ast.AST) -> None:
        if type(node) not in self._nodes:
            what = "a kernel" if self._kernel else "a launcher"
            remedies = _REMEDIES if self._kernel else _REMEDIES | _OF_LAUNCHERS
            raise KernelRefusedError(
                f"{self._at(node)} `{short(node)}`: {what} cannot have it here. {remedies.get(type(node), '')}".rstrip()
            )
        if isinstance(node, ast.keyword) and node.arg is None and self._kernel:
            raise KernelRefusedError(f"{self._at(node)} `**`: write each argument by its name.")
        if isinstance(node, ast.arguments) and (node.vararg or node.kwarg or node.posonlyargs):
            raise KernelRefusedError(
                f"`{self._function.name}` takes `*` or `**` or `/`: write each parameter by its name."
            )
        if isinstance(node, ast.Assign) and len(node.targets) > 1 and self._kernel:
            raise KernelRefusedError(f"{self._at(node, 'assigns twice')}: Triton takes one `=` a line.")
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            raise KernelRefusedError(
                f"{self._at(node, 'assigns to')} `{short(node)}`: a kernel writes with `tl.store`, to names only "
                "otherwise."
            )
        self._require_fields(node, self._nodes[type(node)])

    def _require_fields(self, node: ast.AST, known: Sequence[str]) -> None:
        for field in node._fields:
            value = getattr(node, field, None)
            is_name = field in ("name", "id", "attr", "arg") and field in known and (type(node), value) != _STARS
            if field not in known and value and (type(node), field) not in _LEFT_OUT:
                raise KernelRefusedError(f"{self._at(node)} {_CALLED.get(field, f'`{field}`')}, which is not run here.")
            if is_name and not (isinstance(value, str) and value.isidentifier() and not keyword.iskeyword(value)):
                raise KernelRefusedError(f"{self._at(node)} a name that is none.")
        if isinstance(node, ast.Constant) and type(node.value) not in PLAIN:
            raise KernelRefusedError(f"{self._at(node)} `{short(node)}`; constants are numbers and texts.")

    def _at(self, node: ast.AST, does: str = "uses") -> str:
        return f"`{self._function.name}`, line {getattr(node, 'lineno', self._function.lineno)}, {does}"


def _is_plain(default: ast.expr) -> bool:
    default = constexpr_value(default) or default
    if isinstance(default, ast.Tuple):
        return all(map(_is_plain, default.elts))
    with contextlib.suppress(ValueError, ArithmeticError, TypeError):
        constant(default)
        return True
    return bool(words.dotted(default))


def _require_ascii(name: str, function: ast.FunctionDef) -> None:
    if not name.isascii():
        raise KernelRefusedError(
            f"Line {function.lineno} gives a kernel or its parameter the name `{name}`; write it with the letters a to "
            "z, digits and `_`."
        )


def _is_jit(decorator: ast.expr) -> bool:
    """Tell whether it is `triton.jit`, bare or with options, which say how a compiler works and change no result."""
    has_options = isinstance(decorator, ast.Call) and not decorator.args
    return unparsed(decorator.func if has_options else decorator) == JIT  # type: ignore[attr-defined]  # of a call


def refuse_name(name: str, node: ast.AST) -> None:
    """Raise `KernelRefusedError` for a name that nothing of the text may have."""
    if name.startswith("__") or name in words.BUILTINS or name in words.MODULES:
        raise KernelRefusedError(
            f"Line {getattr(node, 'lineno', 1)} gives something the name `{name}`; take another name."
        )


def short(node: ast.AST) -> str:
    """Return the beginning of a node's text, for a message."""
    return next(iter(unparsed(node).splitlines()), type(node).__name__)[:60]


_NEEDED: Mapping[type[ast.AST], Mapping[str, Any]] = {
    ast.arguments: {"posonlyargs": []},
    ast.comprehension: {"is_async": 0},
    ast.AnnAssign: {"simple": 1},
    ast.For: {"orelse": []},
    ast.While: {"orelse": []},
}
_STARS = (ast.keyword, None)  # `**options` in a call, whose names are texts
_LEFT_OUT = {(ast.arg, "annotation"), (ast.Constant, "kind"), (ast.AnnAssign, "simple")}
_CALLED = {
    "orelse": "an `else` of a loop",
    "type_params": "parameters for types",
    "type_comment": "a comment for types",
}
_REMEDIES: dict[type[ast.AST], str] = {
    ast.Raise: "If it is the stub, write the answer in its place. A launcher may raise a ValueError.",
    ast.FunctionDef: "Write a helper beside it, with its own `@triton.jit`.",
    ast.Lambda: "Lambdas are for the grid of a launch.",
    ast.ListComp: "Write a loop over blocks, or an expression of whole blocks.",
    ast.With: "Remove it.",
    ast.Import: "Remove it; `tl`, `triton` and `torch` are there.",
    ast.Starred: "Write each argument by itself.",
}
_OF_LAUNCHERS: dict[type[ast.AST], str] = {
    ast.FunctionDef: "Write a grid as `lambda meta: (...,)`.",
    ast.Raise: "If it is the stub, write the answer in its place. Otherwise raise `ValueError` with one text.",
}
