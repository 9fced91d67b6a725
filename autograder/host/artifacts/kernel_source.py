"""Check the text of Triton kernels and their launchers, which then runs without the student's other Python.

The text may only define kernels (`@triton.jit`), launchers (plain functions) and constants. It is first written again
from what `kernel_writing` understood of it. In what was written, each name is a local one, one of the text's own, or on
one of the lists below; so is each attribute. So nothing in it reaches Python itself, and what the interpreter counts is
what the kernel does.
"""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from autograder.host.artifacts import kernel_words as words
from autograder.host.artifacts.kernel_collections import growths
from autograder.host.artifacts.kernel_writing import CONSTEXPR, KernelRefusedError, refuse_name, short, written
from autograder.host.source_text import UnreadableSourceError, ids_under, parsed

MAX_CHARACTERS, MAX_WRITTEN = 40_000, 200_000  # of the answer's text, and of what the host wrote

SCOPES = (ast.Lambda, ast.comprehension)


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
    is_constexpr = words.called(statement.value) == CONSTEXPR
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
        nodes = [*ast.walk(self.function.args), *(n for each in self.function.body for n in ast.walk(each))]
        bases = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        for node in nodes:
            if self.kernel and _asks_for_a_type(node):
                raise KernelRefusedError(
                    f"{self._at(node)} `{short(node)}`: a number of the interpreter is a tensor for Triton's compiler, "
                    "which then takes another branch. Compare values; `is` compares with None only."
                )
            if isinstance(node, ast.Attribute):
                self._require_attribute(node)
            elif isinstance(node, ast.arg):
                refuse_name(node.arg, node)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                refuse_name(node.id, node)
        for name in _free_names(self.function):
            self._require_name(name, is_base=id(name) in bases)

    def _require_name(self, node: ast.Name, *, is_base: bool) -> None:
        name, there = node.id, words.BUILTINS if self.kernel else words.BUILTINS | words.MORE_BUILTINS
        if name in there or (is_base and name in words.MODULES):
            return
        if name in self.module:
            if self.kernel and not self.module[name]:
                raise KernelRefusedError(
                    f"{self._at(node)} `{name}`: Triton compiles no kernel that reads a plain global or calls a plain "
                    f"function. Write `{name} = tl.constexpr(...)`, pass it as an argument, or add `@triton.jit`."
                )
            return
        raise KernelRefusedError(
            f"{self._at(node)} `{name}`, which the answer's cell does not define. There are what it defines, `tl.`, "
            f"`triton.` and `torch.` with a name, and {', '.join(sorted(there))}."
        )

    def _require_attribute(self, node: ast.Attribute) -> None:
        base, name = node.value, node.attr
        if not isinstance(node.ctx, ast.Load):
            raise KernelRefusedError(f"{self._at(node)} `{short(node)}` as a name for something else.")
        if words.dotted(node) in self.refused:
            raise KernelRefusedError(f"{self._at(node)} `{short(node)}`, which does this task by itself: write it out.")
        if isinstance(base, ast.Name) and base.id in words.MODULES:
            of_launchers = {} if self.kernel else {"torch": words.OF_TORCH, "math": words.OF_MATH}
            known = name in {"tl": words.LANGUAGE, "triton": words.OF_TRITON, **of_launchers}.get(base.id, ())
        elif words.dotted(base) == "tl.math":
            known = name in words.MATH
        else:
            known = name in (words.OF_VALUES if self.kernel else words.OF_TENSORS)
        if known:
            return
        if not self.kernel and name in words.COPIES:
            raise KernelRefusedError(
                f"{self._at(node)} `.{name}()`, which copies or converts outside of the kernel, and a copy reads and "
                "writes every element. Pass strides, and convert in the kernel."
            )
        where = "a kernel" if self.kernel else "a launcher: it asks for shapes, makes empty tensors and launches"
        raise KernelRefusedError(f"{self._at(node)} `{short(node)}`, which is not there in {where}.")

    def _at(self, node: ast.AST) -> str:
        line = getattr(node, "lineno", self.function.lineno)
        return f"`{self.function.name}`, line {line}, uses"


def _free_names(function: ast.FunctionDef) -> Iterator[ast.Name]:
    """Yield the names that are read where nothing around binds them: no function, no lambda, no comprehension."""
    nodes = [node for each in function.body for node in ast.walk(each)]
    inner = [each.args if isinstance(each, ast.Lambda) else each.target for each in nodes if isinstance(each, SCOPES)]
    hidden = ids_under(inner)
    own = _bound([*words.parameters(function.args), *(node for node in nodes if id(node) not in hidden)])
    parts: list[tuple[ast.AST, tuple[set[str], ...]]] = [(function.args, ())]  # defaults see no local name
    parts += [(each, (own,)) for each in function.body]
    for node, scopes in parts:  # which grows
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and not any(node.id in names for names in scopes):
                yield node
        elif isinstance(node, ast.Lambda):
            parts += [(node.args, scopes), (node.body, (*scopes, _bound(words.parameters(node.args))))]
        elif isinstance(node, ast.GeneratorExp | ast.ListComp):
            first = node.generators[0].iter  # the one part that is computed outside
            inside = (*scopes, _bound([name for each in node.generators for name in ast.walk(each.target)]))
            others = [each for part in node.generators for each in (part.iter, *part.ifs)][1:]
            parts += [(first, scopes), *((each, inside) for each in (node.elt, *others))]
        else:
            parts += [(child, scopes) for child in ast.iter_child_nodes(node)]


def _bound(nodes: Sequence[ast.AST]) -> set[str]:
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.arg for node in nodes if isinstance(node, ast.arg)}


def _asks_for_a_type(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        return not all(isinstance(each, ast.Constant) and each.value is None for each in node.comparators)
    return isinstance(node, ast.Name) and node.id == "isinstance"
