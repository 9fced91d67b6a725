"""The small language of answers to 16.2, whose text the host reads before it runs.

Such a text can name PyTorch's compiler, modules and their names, and nothing else: no import, no other module, no
object of Python's own. The names of attributes are written, or those of the task's own parts. The backend is only
handed on. So the answer cannot change what the run reports of graphs, losses and checkpoints.
"""

import ast
import builtins
from collections.abc import Iterator

from autograder.exercises.setup_cells import SETUP_CELLS
from autograder.host.exercise import AnswerRefusedError
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.setup_imports import imports
from autograder.host.source_text import UnreadableSourceError, parsed

ENTRY = "compile_task"
PARAMETERS = ("task", "backend")
MAX_CHARACTERS = 20_000
NODES = (
    ast.FunctionDef, ast.Lambda, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AnnAssign, ast.Expr, ast.If,
    ast.For, ast.With, ast.withitem, ast.Pass, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call,
    ast.keyword, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Name, ast.List, ast.Tuple, ast.Dict,
    ast.Set, ast.Starred, ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.comprehension, ast.JoinedStr,
    ast.FormattedValue, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
MODULES = frozenset({"torch", "nn", "F", "lightning"})
OF_MODULES = frozenset(
    {
        "torch.compile", "torch.Tensor", "torch.no_grad", "torch.nn", "torch.nn.Module", "torch.nn.Sequential",
        "torch.nn.Linear", "torch.compiler", "torch.compiler.disable", "torch._dynamo", "torch._dynamo.mark_dynamic",
        "torch._dynamo.maybe_mark_dynamic", "torch._dynamo.optimize", "nn.Module", "nn.Sequential", "nn.Linear",
        "lightning.LightningModule", "lightning.pytorch", "lightning.pytorch.LightningModule",
    }
)  # fmt: skip
NAMESPACES = frozenset({"torch.nn", "torch.compiler", "torch._dynamo", "lightning.pytorch"})
GIVEN = frozenset(
    """
    all any bool dict enumerate getattr hasattr int isinstance len list next print range set setattr sorted str tuple
    type zip
    """.split()  # noqa: SIM905  # a list of so many names reads best as a block
)
OF_VALUES = frozenset(
    """
    __module__ __name__ append children compile dim eval forward get get_submodule items keys load_state_dict
    model modules named_children named_modules named_parameters parameters partition pop
    register_load_state_dict_pre_hook register_state_dict_post_hook removeprefix removesuffix replace requires_grad
    shape size split startswith state_dict train training update values
    """.split()  # noqa: SIM905
)
BY_NAME = frozenset({"getattr", "hasattr", "setattr"})
OF_CLASSES = frozenset({"__module__", "__name__"})
COMPILES = frozenset({"torch.compile", "torch._dynamo.optimize"})
OPTIONS = frozenset({"model", "backend", "dynamic", "fullgraph", "nopython"})
# What a name can mean where no variable has it. IPython puts `_` among the builtins.
IMPORTED = {each.name for each in imports(SETUP_CELLS["lightning_training"])}
TAKEN = {*dir(builtins), *IMPORTED, *PARAMETERS, ENTRY} - {"_"}


def require_small_language(answer: AnalysisAnswer) -> None:
    """Raise `AnswerRefusedError` if the text of the answer has more in it than compiling parts needs."""
    try:
        tree = parsed(answer.text, most=MAX_CHARACTERS)
    except UnreadableSourceError as error:
        raise AnswerRefusedError(f"The answer cannot be read: {error}.") from None
    for line, problem in _Text(tree).problems():
        raise AnswerRefusedError(f"The text of compile_task is read before it runs: line {line}: {problem}")


class _Text:
    def __init__(self, tree: ast.Module) -> None:
        self._tree, self._nodes = tree, list(ast.walk(tree))
        self._entries = [n for n in self._nodes if isinstance(n, ast.FunctionDef) and n.name == ENTRY]
        self._parameters = {id(arg) for entry in self._entries for arg in entry.args.args}
        names = [node for node in self._nodes if isinstance(node, ast.Name)]
        self._own = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | {"task"}
        self._own |= {node.arg for node in self._nodes if isinstance(node, ast.arg)}
        self._own |= {node.name for node in self._nodes if isinstance(node, ast.FunctionDef)} - {ENTRY}
        self._known = self._own | GIVEN
        self._before_dots = {id(node.value) for node in self._nodes if isinstance(node, ast.Attribute)}
        self._called = {id(node.func) for node in self._nodes if isinstance(node, ast.Call)}
        self._handed = {id(each) for node in self._nodes for each in _handed_on(node)}
        self._classes = {id(each) for node in self._nodes for each in _where_classes_are_read(node)}
        self._of_children = _reads_of_childrens_names(tree)

    def problems(self) -> Iterator[tuple[int, str]]:
        """Give what does not belong to the language, with its line."""
        parameters = [[arg.arg for arg in ast.walk(each.args) if isinstance(arg, ast.arg)] for each in self._entries]
        alone = len(self._parameters) == len(PARAMETERS) and not self._entries[0].decorator_list
        if parameters != [[*PARAMETERS]] or not alone:
            yield 1, f"define {ENTRY}(task, backend) once, with these two parameters and no decorator."
        for statement in self._tree.body:
            if not isinstance(statement, ast.FunctionDef | ast.Expr):
                yield statement.lineno, "write functions only; the notebook's imports are there."
        for node in self._nodes[1:]:
            for problem in self._of(node):
                yield getattr(node, "lineno", 1), problem

    def _of(self, node: ast.AST) -> Iterator[str]:
        if not isinstance(node, NODES):
            yield f"{type(node).__name__} is not allowed here. Compile the parts in a loop, by functions if you like."
        elif isinstance(node, ast.FunctionDef) and node not in self._entries:
            yield from _of_new_name(node.name)
        elif isinstance(node, ast.arg) and id(node) not in self._parameters:
            yield from _of_new_name(node.arg)
        elif isinstance(node, ast.Name):
            yield from self._of_name(node)
        elif isinstance(node, ast.Attribute):
            yield from self._of_attribute(node)
        elif isinstance(node, ast.Call):
            yield from self._of_call(node)

    def _of_name(self, node: ast.Name) -> Iterator[str]:
        if not isinstance(node.ctx, ast.Load):
            yield from _of_new_name(node.id)
        elif node.id in MODULES:
            if id(node) not in self._before_dots:
                yield f"{node.id} is read only as in torch.compile."
        elif node.id == "backend":
            if id(node) not in self._handed:
                yield "the backend is handed to torch.compile only, as backend=backend."
        elif node.id not in self._known:
            yield f"{node.id[:40]} is not known here. Use the task, the backend, torch.compile and plain Python."
        elif node.id in BY_NAME | {"type"} and id(node) not in self._called:
            yield f"{node.id} is called only."

    def _of_attribute(self, node: ast.Attribute) -> Iterator[str]:
        dotted = _dotted(node)
        if not isinstance(node.ctx, ast.Load):
            if node.attr != "forward" or dotted:
                yield f"{node.attr[:40]} is set. Set `forward` of a part only."
        elif dotted and (dotted not in OF_MODULES or (dotted in NAMESPACES and id(node) not in self._before_dots)):
            yield f"{dotted[:60]} is not allowed here. torch.compile is."
        elif not dotted and node.attr not in OF_VALUES:
            yield f"the attribute {node.attr[:40]} is not allowed here."

    def _of_call(self, node: ast.Call) -> Iterator[str]:
        called = _named(node.func)
        if called == "type" and id(node) not in self._classes:
            yield "the result of type is compared, or asked for its __name__ or __module__."
        if called in BY_NAME:
            name = node.args[1] if len(node.args) > 1 and not isinstance(node.args[0], ast.Starred) else None
            allowed = {"forward"} if called == "setattr" else OF_VALUES
            if id(name) not in self._of_children and not (isinstance(name, ast.Constant) and name.value in allowed):
                yield "write an attribute's name, such as 'forward', or loop: for name, part in task.named_children()."
        known = all(isinstance(each, ast.Constant) or _named(each) == "backend" for each in _handed_on(node))
        if _compiles(node) and not (known and {each.arg for each in node.keywords} <= OPTIONS):
            yield "compile with the options backend=backend, dynamic and fullgraph, and no others."


def _of_new_name(name: str) -> Iterator[str]:
    if name.startswith("__") or name in TAKEN:
        yield f"take another name than {name[:40]}."


def _named(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _compiles(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and (call.func.attr == "compile" or _dotted(call.func) in COMPILES)


def _handed_on(node: ast.AST) -> list[ast.expr]:
    """Return what a call that compiles gets as its backend."""
    if not isinstance(node, ast.Call) or not _compiles(node):
        return []
    given = [each.value for each in node.keywords if each.arg == "backend"]
    return [*given, *(node.args[:1] if _dotted(node.func) == "torch._dynamo.optimize" else [])]


def _where_classes_are_read(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return [node.value] if isinstance(node, ast.Attribute) and node.attr in OF_CLASSES else []


def _reads_of_childrens_names(tree: ast.Module) -> set[int]:
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
    if isinstance(source, ast.Call) and _named(source.func) in ("list", "tuple") and len(source.args) == 1:
        source = source.args[0]
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute) or source.args or source.keywords:
        return []
    right = (_named(source.func.value), source.func.attr) == ("task", "named_children")
    return targets[:1] if right and len(targets) == len(node.target.elts) == 2 else []


def _dotted(node: ast.AST) -> str:
    """Return what an expression such as `torch.compile` names; empty if it begins with no module."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([_named(node), *reversed(parts)]) if _named(node) in MODULES else ""
