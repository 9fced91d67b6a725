"""What names of an answer to 16.2 mean, by the functions around them."""

import ast
import builtins
from collections import Counter
from collections.abc import Iterator, Sequence, Set

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def reads_from_outside(tree: ast.Module, names: Set[str]) -> set[int]:
    """Return the ids of those reads of these names that no function around binds, as Python scopes them.

    A name that a function binds is its variable in all of it: read too early it is an error, never a builtin. At the
    top of a module it would be the builtin until then, so what is bound there does not count.
    """
    found, waiting = set[int](), list[tuple[ast.AST, Set[str]]]([(tree, frozenset())])
    while waiting:
        node, bound = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names and node.id not in bound:
            found.add(id(node))
        inside = _own_parts(node)
        within = {id(each) for each in inside}
        waiting += [(each, bound) for each in _parts(node) if id(each) not in within]
        if inside:
            inner = bound | (names & set(_bound(node, inside)))
            waiting += [(each, inner) for each in inside]
    return found


def _parts(node: ast.AST) -> list[ast.AST]:
    """Return what a node consists of, with the parts of a comprehension's loops for themselves."""
    parts = list[ast.AST]()
    for each in ast.iter_child_nodes(node):
        parts += ast.iter_child_nodes(each) if isinstance(each, ast.comprehension) else [each]
    return parts


def _own_parts(node: ast.AST) -> list[ast.AST]:
    """Return the parts that see the node's own variables: no decorator, default, annotation or first iterable does."""
    if isinstance(node, ast.FunctionDef):
        return [*node.body]
    if isinstance(node, ast.Lambda):
        return [node.body]
    if isinstance(node, COMPREHENSIONS):
        return [each for each in _parts(node) if each is not node.generators[0].iter]
    return []


def _bound(node: ast.AST, inside: list[ast.AST]) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        yield from (each.arg for each in parameters(node.args))
    waiting = [*inside]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.FunctionDef):
            yield each.name
        elif isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            yield each.id
        elif not isinstance(each, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            waiting += ast.iter_child_nodes(each)


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Return all parameters of a function, without those of a function among their defaults."""
    several = [each for each in (arguments.vararg, arguments.kwarg) if each]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *several]


class Helpers:
    """The functions of an answer with parameters of the entry's names, such as `def compile_part(part, backend)`.

    Such a parameter is what the entry was given, since each call hands it on by the same name. For that the function
    is the only thing of its name, no builtin either, is only called, and has no decorator.
    """

    def __init__(self, nodes: Sequence[ast.AST], passed: Set[str], entry: str) -> None:
        bound = Counter(node.name for node in nodes if isinstance(node, ast.FunctionDef))
        bound += Counter(node.arg for node in nodes if isinstance(node, ast.arg))
        bound += Counter(n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
        calls = [n for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
        called = {id(call.func) for call in calls}
        read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in called}
        self.parameters, self.handed = set[int](), set[int]()
        """The ids of such parameters, and of the names that are handed to them."""
        for function in nodes:
            if not isinstance(function, ast.FunctionDef) or function.name == entry:
                continue
            its = [each for each in parameters(function.args) if each.arg in passed]
            mine = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == function.name]
            alone = bound[function.name] == 1 and not hasattr(builtins, function.name)
            only_called = function.name not in read and not function.decorator_list
            given = [_given(function.args, each.arg, call) for each in its for call in mine]
            same = all(isinstance(value, ast.Name) and value.id == name for name, value in given)
            if its and alone and only_called and same:
                self.parameters |= {id(each) for each in its}
                self.handed |= {id(value) for _, value in given}


def _given(arguments: ast.arguments, name: str, call: ast.Call) -> tuple[str, ast.expr | None]:
    """Return the name of a parameter, and what a call hands to it; None where that is not written plainly."""
    plain = not any(isinstance(each, ast.Starred) for each in call.args) and all(each.arg for each in call.keywords)
    places = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    by_place = dict(zip(places, call.args, strict=False))
    named_ones = {each.arg for each in (*arguments.args, *arguments.kwonlyargs)}
    by_name = {each.arg: each.value for each in call.keywords if each.arg in named_ones}
    return name, (by_place.get(name) or by_name.get(name)) if plain else None


def named(node: ast.AST) -> str:
    """Return the name that an expression is; empty if it is something else."""
    return node.id if isinstance(node, ast.Name) else ""


def reads_of_childrens_names(tree: ast.Module) -> set[int]:
    """Return the names that are read where they, by all functions around, come from `task.named_children()` only."""
    found, waiting = set[int](), list[tuple[ast.AST, set[str], set[str]]]([(tree, set(), set())])
    while waiting:
        function, known, other = waiting.pop()
        inside = _inside(function)
        names = [node for node in inside if isinstance(node, ast.Name)]
        of_children = {id(target): target.id for node in inside for target in _names_children(node)}
        known = known | set(of_children.values())
        other = other | {n.id for n in names if not isinstance(n.ctx, ast.Load) and id(n) not in of_children}
        other |= {node.arg for node in inside if isinstance(node, ast.arg)}
        inner = [node for node in inside if isinstance(node, ast.FunctionDef)]
        other |= {each.name for each in inner}
        clear = known - other
        found |= {id(n) for n in names if isinstance(n.ctx, ast.Load) and n.id in clear}
        waiting += [(each, known, other) for each in inner]
    return found


def _inside(function: ast.AST) -> list[ast.AST]:
    """Return the nodes of a function, without those of the functions in it."""
    inside, waiting = list[ast.AST](), list(ast.iter_child_nodes(function))
    while waiting:
        inside.append(waiting.pop())
        if not isinstance(inside[-1], ast.FunctionDef):
            waiting += ast.iter_child_nodes(inside[-1])
    return inside


def _names_children(node: ast.AST) -> list[ast.Name]:
    """Return the target that gets the names of the task's own parts, in `for name, part in task.named_children()`."""
    if not isinstance(node, ast.For | ast.comprehension) or not isinstance(node.target, ast.Tuple):
        return []
    source, targets = node.iter, [each for each in node.target.elts if isinstance(each, ast.Name)]
    if isinstance(source, ast.Call) and named(source.func) in ("list", "tuple") and len(source.args) == 1:
        source = source.args[0]
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute) or source.args or source.keywords:
        return []
    right = (named(source.func.value), source.func.attr) == ("task", "named_children")
    return targets[:1] if right and len(targets) == len(node.target.elts) == 2 else []
