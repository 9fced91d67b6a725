"""Check the text of Triton kernels and their launchers, which then runs without the student's other Python.

The text may only define kernels (`@triton.jit`), launchers (plain functions) and constants. It is first written again
from what `kernel_writing` understood of it. In what was written, each name is a local one, one of the text's own, or on
one of the lists below; so is each attribute. So nothing in it reaches Python itself, and what the interpreter counts is
what the kernel does.
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
from autograder.host.artifacts.kernel_writing import KernelRefusedError, constexpr_value, refuse_name, short, written
from autograder.host.source_text import UnreadableSourceError, parsed

MAX_CHARACTERS, MAX_WRITTEN = 40_000, 200_000  # of the answer's text, and of what the host wrote


@dataclass(frozen=True)
class KernelText:
    """The texts that the host wrote, by the names of their cells, and the parameters of each launcher."""

    parts: Mapping[str, str]
    launchers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def checked_kernels(parts: Mapping[str, str], refused: Collection[str] = ()) -> KernelText:
    """Return what the host wrote of texts that are all in the small language, to run in place of them.

    `refused` names parts of the language that do this task by themselves. Raises `KernelRefusedError`.
    """
    texts = {name: written(_tree(text, MAX_CHARACTERS).body) for name, text in parts.items()}
    trees = {name: _tree(text) for name, text in texts.items()}
    own: dict[str, bool] = {}  # names of the module; whether a kernel may read them
    for tree in trees.values():
        names = [statement.name for statement in tree.body if isinstance(statement, ast.FunctionDef)]
        if twice := [name for name in names if names.count(name) > 1]:
            raise KernelRefusedError(f"`{twice[0]}` is defined twice in a cell. Keep one definition of each function.")
        for statement in tree.body:
            own |= _defined(statement)
    launchers: dict[str, tuple[str, ...]] = {}
    kernels: dict[str, ast.FunctionDef] = {}
    for tree in trees.values():
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef):
                kernel = bool(statement.decorator_list)
                _Function(statement, own, kernel=kernel, refused=frozenset(refused)).check()
                if kernel:
                    kernels[statement.name] = statement
                else:
                    launchers[statement.name] = tuple(a.arg for a in statement.args.args)
    for growth in growths(kernels):
        line = getattr(growth.node, "lineno", growth.function.lineno)
        raise KernelRefusedError(f"`{growth.function.name}`, line {line}: `{short(growth.node)}`: {growth.says}")
    return KernelText(texts, launchers)


def _tree(text: str, most: int = MAX_WRITTEN) -> ast.Module:
    try:
        return parsed(text, most=most)
    except UnreadableSourceError as error:
        raise KernelRefusedError(f"The answer cannot be read: {error}.") from None


def _defined(statement: ast.stmt) -> dict[str, bool]:
    """Return the names that a statement of a written text defines, and whether a kernel may read them."""
    if isinstance(statement, ast.FunctionDef):
        return {statement.name: bool(statement.decorator_list)}
    assert isinstance(statement, ast.Assign), "there are functions and constants only"
    is_constexpr = constexpr_value(statement.value) is not None
    return {target.id: is_constexpr for target in statement.targets if isinstance(target, ast.Name)}


@dataclass(frozen=True)
class _Function:
    """One function of the text, and the names that it may use."""

    function: ast.FunctionDef
    module: Mapping[str, bool]
    kernel: bool
    refused: frozenset[str]

    def check(self) -> None:
        """Raise `KernelRefusedError` for the first thing in the function that is not in the language."""
        head, body = list(ast.walk(self.function.args)), [n for each in self.function.body for n in ast.walk(each)]
        nodes = [*head, *body]
        lambdas = [node for node in nodes if isinstance(node, ast.Lambda)]
        local = set(self._bound(nodes, lambdas))
        of_lambdas = _parameters_of(lambdas)
        bases = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        at_module = {id(node) for node in head}  # defaults and annotations see no local name, not even in a lambda
        for node in nodes:
            if self.kernel and _asks_for_a_type(node):
                raise KernelRefusedError(
                    f"{self._at(node)} `{short(node)}`: a number of the interpreter is a tensor for Triton's compiler, "
                    "which then takes another branch. Compare values; `is` compares with None only."
                )
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
                refuse_name(name, node)
                if id(node) not in inside:
                    yield name

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
        whole = short(node)
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


def _asks_for_a_type(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        return not all(isinstance(each, ast.Constant) and each.value is None for each in node.comparators)
    return isinstance(node, ast.Name) and node.id == "isinstance"
