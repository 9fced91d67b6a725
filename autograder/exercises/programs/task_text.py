"""The small language of answers to 16.2, whose text the host reads before it runs.

Such a text can name PyTorch's compiler, modules and their names, and nothing else: no import, no other module, no
object of Python's own. The backend is only handed on. So the answer cannot change what the run reports of graphs,
losses and checkpoints.
"""

import ast
from collections.abc import Iterator

from autograder.host.exercise import AnswerRefusedError
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.source_text import UnreadableSourceError, parsed

ENTRY = "compile_task"
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
    type zip LightningModule NotImplementedError
    """.split()  # noqa: SIM905  # a list of so many names reads best as a block
)
OF_VALUES = frozenset(
    """
    __module__ __name__ append child children compile dim eval forward get get_submodule items keys load_state_dict
    model modules named_children named_modules named_parameters parameters partition pop
    register_load_state_dict_pre_hook register_state_dict_post_hook removeprefix removesuffix replace requires_grad
    shape size split startswith state_dict train training update values
    """.split()  # noqa: SIM905
)
BY_NAME = frozenset({"getattr", "hasattr", "setattr"})
NAMING = frozenset({"named_children", "named_modules"})
COMPILES = frozenset({"torch.compile", "torch._dynamo.optimize"})


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
        self._tree, nodes = tree, list(ast.walk(tree))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        self._written = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        self._own = self._written | {node.arg for node in nodes if isinstance(node, ast.arg)}
        self._own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        self._before_dots = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        self._called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        self._handed = {id(each) for node in nodes if isinstance(node, ast.Call) for each in _handed_on(node)}
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.Lambda)]
        self._of_children = {id(name) for function in functions for name in _read_names_of_children(function)}

    def problems(self) -> Iterator[tuple[int, str]]:
        """Give what does not belong to the language, with its line."""
        entries = [each for each in ast.walk(self._tree) if isinstance(each, ast.FunctionDef) and each.name == ENTRY]
        parameters = [[arg.arg for arg in ast.walk(each.args) if isinstance(arg, ast.arg)] for each in entries]
        if parameters != [["task", "backend"]] or entries[0].args.vararg or entries[0].args.kwarg:
            yield 1, f"define {ENTRY}(task, backend) once, with these two parameters."
        for statement in self._tree.body:
            if not isinstance(statement, ast.FunctionDef | ast.Expr):
                yield statement.lineno, "write functions only; the notebook's imports are there."
        for node in (each for statement in self._tree.body for each in ast.walk(statement)):
            for problem in self._of(node):
                yield getattr(node, "lineno", 1), problem

    def _of(self, node: ast.AST) -> Iterator[str]:
        if not isinstance(node, NODES):
            yield f"{type(node).__name__} is not allowed here. Compile the parts in a loop, by functions if you like."
        if isinstance(node, ast.FunctionDef | ast.arg):
            yield from _of_new_name(node.name if isinstance(node, ast.FunctionDef) else node.arg)
        if isinstance(node, ast.Name):
            yield from self._of_name(node)
        if isinstance(node, ast.Attribute):
            yield from self._of_attribute(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in BY_NAME:
                yield from self._of_call_by_name(node)
            elif node.func.id == "type" and (len(node.args) != 1 or node.keywords):
                yield "type is called with one object."

    def _of_name(self, node: ast.Name) -> Iterator[str]:
        if not isinstance(node.ctx, ast.Load):
            yield from _of_new_name(node.id)
        elif node.id in MODULES:
            if id(node) not in self._before_dots:
                yield f"{node.id} is read only as in torch.compile."
        elif node.id == "backend":
            if id(node) not in self._handed:
                yield "the backend is handed to torch.compile only, as backend=backend."
        elif node.id not in self._own | GIVEN:
            yield f"{node.id[:40]} is not known here. Use the task, the backend, torch.compile and plain Python."
        elif node.id in BY_NAME | {"type"} and id(node) not in self._called:
            yield f"{node.id} is called only."

    def _of_attribute(self, node: ast.Attribute) -> Iterator[str]:
        dotted = _dotted(node)
        if not isinstance(node.ctx, ast.Load):
            if node.attr != "forward":
                yield f"{node.attr[:40]} is set. Set `forward` of a part only."
        elif dotted and (dotted not in OF_MODULES or (dotted in NAMESPACES and id(node) not in self._before_dots)):
            yield f"{dotted[:60]} is not allowed here. torch.compile is."
        elif not dotted and node.attr not in OF_VALUES:
            yield f"the attribute {node.attr[:40]} is not allowed here."

    def _of_call_by_name(self, node: ast.Call) -> Iterator[str]:
        name = node.args[1] if len(node.args) > 1 else None
        allowed = {"forward"} if node.func.id == "setattr" else OF_VALUES  # type: ignore[attr-defined]  # a name
        if id(name) not in self._of_children and not (isinstance(name, ast.Constant) and name.value in allowed):
            yield "write the name of an attribute, such as 'forward', or take it from a loop over named_children()."


def _of_new_name(name: str) -> Iterator[str]:
    if name.startswith("__") or name in MODULES | GIVEN:
        yield f"take another name than {name[:40]}."


def _handed_on(call: ast.Call) -> list[ast.expr]:
    """Return what a call that compiles gets as its backend."""
    given = [each.value for each in call.keywords if each.arg == "backend"]
    compiles = isinstance(call.func, ast.Attribute) and (call.func.attr == "compile" or _dotted(call.func) in COMPILES)
    return [*given, *(call.args[:1] if _dotted(call.func) == "torch._dynamo.optimize" else [])] if compiles else []


def _read_names_of_children(function: ast.FunctionDef | ast.Lambda) -> list[ast.Name]:
    """Return where a function reads names that it has from loops over `named_children()`, and from nowhere else."""
    inside, waiting = list[ast.AST](), list(ast.iter_child_nodes(function))
    while waiting:
        inside.append(waiting.pop())
        if not isinstance(inside[-1], ast.FunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(inside[-1])
    loops = [node for node in inside if isinstance(node, ast.For | ast.comprehension)]
    targets = [node.target for node in loops if _names_children(node.iter)]
    from_children = [each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    names = [node for node in inside if isinstance(node, ast.Name)]
    written = [node for node in names if not isinstance(node.ctx, ast.Load)]
    elsewhere = {node.id for node in written if node not in from_children}
    elsewhere |= {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    known = {node.id for node in from_children} - elsewhere
    return [node for node in names if isinstance(node.ctx, ast.Load) and node.id in known]


def _names_children(node: ast.expr) -> bool:
    """Return whether names come from the task's own parts: `task.named_children()`, as a list or not."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple", "sorted"):
        return len(node.args) == 1 and _names_children(node.args[0])
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NAMING


def _dotted(node: ast.AST) -> str:
    """Return what an expression such as `torch.compile` names; empty if it begins with no module."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) and node.id in MODULES else ""
