"""Check the text of Triton kernels and their launchers, which then runs without the student's other Python.

The text may only define kernels (`@triton.jit`), launchers (plain functions) and constants. Each name is a local one,
one of the text's own, or on one of the lists below; so is each attribute. So nothing in it reaches Python itself, and
what the interpreter counts is what the kernel does. The tree is read without recursion.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from autograder.host.artifacts.kernel_collections import growths
from autograder.host.artifacts.kernel_words import (
    BUILTINS,
    COPIES,
    LANGUAGE,
    MATH,
    MODULES,
    OF_TENSORS,
    OF_TORCH,
    OF_TRITON,
    OF_VALUES,
)
from autograder.host.source_text import UnreadableSourceError, parsed

MAX_CHARACTERS = 40_000
STATEMENTS = (
    ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Pass, ast.Break,
    ast.Continue, ast.Assert,
)  # fmt: skip
EXPRESSIONS = (
    ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call, ast.Constant, ast.Attribute, ast.Subscript,
    ast.Name, ast.List, ast.Tuple, ast.Slice, ast.keyword, ast.arguments, ast.arg, ast.expr_context, ast.operator,
    ast.unaryop, ast.boolop, ast.cmpop, ast.FunctionDef,
)  # fmt: skip
OF_LAUNCHERS = (ast.Lambda, ast.JoinedStr, ast.FormattedValue, ast.Starred)
IMPORTS = frozenset(
    ("import torch", "import triton", "import triton.language as tl", "from triton import language as tl")
)
IS_JIT = ast.dump(ast.parse("triton.jit", mode="eval").body)


class KernelRefusedError(Exception):
    """The text leaves the small language; the message is for the student."""


@dataclass(frozen=True)
class KernelText:
    """Checked texts by the names of their cells, and the parameters of each launcher."""

    parts: Mapping[str, str]
    launchers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def checked_kernels(parts: Mapping[str, str], refused: Collection[str] = ()) -> KernelText:
    """Return the texts if all are in the small language; `refused` names parts of it that do this task by themselves.

    Raises `KernelRefusedError`.
    """
    trees = {name: _tree(text) for name, text in parts.items()}
    own: dict[str, bool] = {}  # names of the module; whether a kernel may read them
    for tree in trees.values():
        for statement in tree.body:
            own |= _defined(statement)
    launchers: dict[str, tuple[str, ...]] = {}
    kernels: dict[str, ast.FunctionDef] = {}
    for tree in trees.values():
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef):
                kernel = _is_kernel(statement)
                _Function(statement, own, kernel=kernel, refused=frozenset(refused)).check()
                if kernel:
                    kernels[statement.name] = statement
                else:
                    launchers[statement.name] = tuple(a.arg for a in statement.args.args)
    for growth in growths(kernels):
        line = getattr(growth.node, "lineno", growth.function.lineno)
        raise KernelRefusedError(f"`{growth.function.name}`, line {line}: `{_short(growth.node)}`: {growth.says}")
    return KernelText(dict(parts), launchers)


def _tree(text: str) -> ast.Module:
    try:
        return parsed(text, most=MAX_CHARACTERS)
    except UnreadableSourceError as error:
        raise KernelRefusedError(f"The answer cannot be read: {error}.") from None


def _defined(statement: ast.stmt) -> dict[str, bool]:
    """Return the names that a statement of the module defines; raises for one that defines no kernel, no constant."""
    if isinstance(statement, ast.FunctionDef):
        _refuse_name(statement.name, statement)
        return {statement.name: _is_kernel(statement)}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        if ast.unparse(statement) in IMPORTS:
            return {}
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        names = _constant_names(statement)
        if names:
            return names
    elif isinstance(statement, ast.Pass) or _is_text(statement):
        return {}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        raise KernelRefusedError(
            f"Line {statement.lineno} of the answer's cell has `{_short(statement)}`. Remove it: `tl`, `triton` and "
            "`torch` are there, and nothing else is, so write `torch.Tensor`, `triton.cdiv`."
        )
    raise KernelRefusedError(
        f"Line {statement.lineno} of the answer's cell is graded as a kernel's text, and "
        f"`{_short(statement)}` is neither "
        "a function nor a constant such as `BLOCK = tl.constexpr(128)`. Try things out in another cell."
    )


def _constant_names(statement: ast.Assign | ast.AnnAssign) -> dict[str, bool]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    value = statement.value
    is_constexpr = isinstance(statement, ast.AnnAssign) and ast.unparse(statement.annotation) == "tl.constexpr"
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "tl.constexpr" and len(value.args) == 1:
        value, is_constexpr = value.args[0], True
    allowed = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    if value is None or not all(isinstance(node, allowed) for node in ast.walk(value)):
        return {}
    if not all(isinstance(target, ast.Name) for target in targets):
        return {}
    for target in targets:
        _refuse_name(target.id, statement)  # type: ignore[attr-defined]  # names, as tested above
    return {target.id: is_constexpr for target in targets}  # type: ignore[attr-defined]


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_kernel(function: ast.FunctionDef) -> bool:
    if len(function.decorator_list) > 1 or not all(map(_is_jit, function.decorator_list)):
        raise KernelRefusedError(
            f"`{function.name}` has the decorator `@{ast.unparse(function.decorator_list[0])[:60]}`; "
            "only `@triton.jit` is run here, without autotuning and heuristics. Choose the block in the launcher."
        )
    return bool(function.decorator_list)


def _is_jit(decorator: ast.expr) -> bool:
    """Tell whether it is `triton.jit`, bare or with options, which say how a compiler works and change no result."""
    if not isinstance(decorator, ast.Call):
        return ast.dump(decorator) == IS_JIT
    plain = (ast.Constant, ast.List, ast.Tuple, ast.Load)
    values = [inner for option in decorator.keywords for inner in ast.walk(option.value)]
    return ast.dump(decorator.func) == IS_JIT and not decorator.args and all(isinstance(v, plain) for v in values)


@dataclass(frozen=True)
class _Function:
    """One function of the text, and the names that it may use."""

    function: ast.FunctionDef
    module: Mapping[str, bool]
    kernel: bool
    refused: frozenset[str]

    def check(self) -> None:
        """Raise `KernelRefusedError` for the first thing in the function that is not in the language."""
        function = self.function
        outside = [function.args, *([function.returns] if function.returns else [])]
        head, body = ([node for root in roots for node in ast.walk(root)] for roots in (outside, function.body))
        nodes = [*head, *body]
        lambdas = [node for node in nodes if isinstance(node, ast.Lambda)]
        local = set(self._bound(nodes, lambdas))
        of_lambdas = _parameters_of(lambdas)
        bases = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        at_module = {id(node) for node in head}  # defaults and annotations see no local name, not even in a lambda
        for node in nodes:
            self._require_known(node)
            if isinstance(node, ast.Attribute):
                self._require_attribute(node)
            elif isinstance(node, ast.Name) and node.id not in of_lambdas.get(id(node), ()):
                self._require_name(node, () if id(node) in at_module else local, is_base=id(node) in bases)

    def _bound(self, nodes: list[ast.AST], lambdas: list[ast.Lambda]) -> Iterator[str]:
        inside = {id(arg) for each in lambdas for arg in ast.walk(each.args)}
        for node in nodes:
            name = ""
            if isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            if name:
                _refuse_name(name, node)
                if id(node) not in inside:
                    yield name

    def _require_known(self, node: ast.AST) -> None:
        allowed = (*STATEMENTS, *EXPRESSIONS, *(() if self.kernel else OF_LAUNCHERS))
        if not isinstance(node, allowed) or isinstance(node, ast.FunctionDef):
            what = "a kernel" if self.kernel else "a launcher"
            raise KernelRefusedError(
                f"{self._at(node)} `{_short(node)}`: {what} cannot have it here. "
                f"{(_REMEDIES if self.kernel else _REMEDIES | _OF_LAUNCHERS).get(type(node), '')}".rstrip()
            )
        if isinstance(node, ast.keyword) and node.arg is None:
            raise KernelRefusedError(f"{self._at(node)} `**`: write each argument by its name.")
        if isinstance(node, ast.arguments) and (node.vararg or node.kwarg or node.posonlyargs):
            raise KernelRefusedError(
                f"`{self.function.name}` takes `*` or `**` or `/`: write each parameter by its name."
            )
        if isinstance(node, ast.Assign) and len(node.targets) > 1:
            raise KernelRefusedError(f"{self._at(node)} assigns twice: Triton takes one `=` a line.")
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            raise KernelRefusedError(
                f"{self._at(node)} assigns to `{_short(node)}`: a kernel writes with `tl.store`, to names "
                "only otherwise."
            )

    def _require_name(self, node: ast.Name, local: Collection[str], *, is_base: bool) -> None:
        name = node.id
        if name in local or name in BUILTINS or (is_base and name in MODULES):
            return
        if name in self.module:
            if self.kernel and not self.module[name]:
                raise KernelRefusedError(
                    f"{self._at(node)} `{name}`: Triton compiles no kernel that reads a plain global or calls a plain "
                    f"function. Write `{name} = tl.constexpr(...)`, pass it as an argument, or add `@triton.jit`."
                )
            return
        raise KernelRefusedError(
            f"{self._at(node)} `{name}`, which the answer's cell does not define. There are what it "
            "defines, `tl.`, `triton.` "
            f"and `torch.` with a name, and {', '.join(sorted(BUILTINS))}."
        )

    def _require_attribute(self, node: ast.Attribute) -> None:
        base, name = node.value, node.attr
        whole = _short(node)
        if whole in self.refused:
            raise KernelRefusedError(f"{self._at(node)} `{whole}`, which does this task by itself: write it out.")
        if isinstance(base, ast.Name) and base.id in MODULES:
            there = {"tl": LANGUAGE, "triton": OF_TRITON, "torch": frozenset() if self.kernel else OF_TORCH}[base.id]
            known = name in there
        elif isinstance(base, ast.Attribute) and ast.unparse(base) == "tl.math":
            known = name in MATH
        else:
            known = name in (OF_VALUES if self.kernel else OF_TENSORS)
        if known:
            return
        if not self.kernel and name in COPIES:
            raise KernelRefusedError(
                f"{self._at(node)} `.{name}()`, which copies or converts outside of the kernel, and a "
                "copy costs a read and "
                "a write of every element. Pass strides, and convert in the kernel."
            )
        where = "a kernel" if self.kernel else "a launcher: it asks for shapes, makes empty tensors and launches"
        raise KernelRefusedError(f"{self._at(node)} `{whole}`, which is not there in {where}.")

    def _at(self, node: ast.AST) -> str:
        line = getattr(node, "lineno", self.function.lineno)
        return f"`{self.function.name}`, line {line}, uses"


def _parameters_of(lambdas: list[ast.Lambda]) -> dict[int, set[str]]:
    """Return the parameters that each node in the body of a lambda sees; defaults lie outside of it."""
    seen: dict[int, set[str]] = {}
    for each in lambdas:
        for inner in ast.walk(each.body):
            seen.setdefault(id(inner), set()).update(arg.arg for arg in each.args.args)
    return seen


_REMEDIES: dict[type[ast.AST], str] = {
    ast.Raise: "If it is the stub, write the answer in its place.",
    ast.FunctionDef: "Write a helper beside it, with its own `@triton.jit`.",
    ast.Lambda: "Lambdas are for the grid of a launch.",
    ast.ListComp: "Write a loop over blocks, or an expression of whole blocks.",
    ast.With: "Remove it.",
    ast.Import: "Remove it; `tl`, `triton` and `torch` are there.",
    ast.Starred: "Write each argument by itself.",
}

_OF_LAUNCHERS: dict[type[ast.AST], str] = {ast.FunctionDef: "Write a grid as `lambda meta: (...,)`."}


def _refuse_name(name: str, node: ast.AST) -> None:
    if name.startswith("__") or name in BUILTINS or name in MODULES:
        raise KernelRefusedError(
            f"Line {getattr(node, 'lineno', 1)} gives something the name `{name}`; take another name."
        )


def _short(node: ast.AST) -> str:
    text = ast.unparse(node).splitlines()
    return text[0][:60] if text else type(node).__name__
