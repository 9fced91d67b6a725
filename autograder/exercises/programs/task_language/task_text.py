"""The small language of answers to 16.2, whose text the host reads before it runs.

Such a text can name PyTorch's compiler, modules and their names, and nothing else: no import, no other module, no
object of Python's own. The names of attributes are written, or those of the task's own parts. What compiles is only
called, and the backend only handed on. So the answer cannot change what the run reports of graphs, losses and
checkpoints.
"""

import ast
import builtins
from collections.abc import Collection, Iterator

from autograder.exercises.programs.task_language.task_names import (
    Helpers,
    named,
    reads_from_outside,
    reads_of_childrens_names,
)
from autograder.exercises.setup_cells import SETUP_CELLS
from autograder.host.exercise import AnswerRefusedError
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.setup_imports import imports
from autograder.host.source_text import UnreadableSourceError, parsed

ENTRY = "compile_task"
PARAMETERS = ("task", "backend")
MAX_CHARACTERS = 20_000
NODES = (
    ast.FunctionDef, ast.Lambda, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr,
    ast.If, ast.For, ast.While, ast.Break, ast.Continue, ast.Assert, ast.With, ast.withitem, ast.Pass, ast.BoolOp,
    ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call, ast.keyword, ast.Constant, ast.Attribute, ast.Subscript,
    ast.Slice, ast.Name, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Starred, ast.ListComp, ast.DictComp,
    ast.GeneratorExp, ast.comprehension, ast.JoinedStr, ast.FormattedValue, ast.expr_context, ast.operator,
    ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
MODULES = frozenset({"torch", "nn", "F", "lightning"})
OF_MODULES = frozenset(
    {
        "torch.compile", "torch.Tensor", "torch.no_grad", "torch.nn", "torch.nn.Module", "torch.nn.Sequential",
        "torch.nn.Linear", "torch.compiler", "torch.compiler.disable", "torch._dynamo", "torch._dynamo.mark_dynamic",
        "torch._dynamo.maybe_mark_dynamic", "torch._dynamo.optimize", "torch._dynamo.reset", "nn.Module",
        "nn.Sequential", "nn.Linear", "lightning.LightningModule", "lightning.pytorch",
        "lightning.pytorch.LightningModule",
    }
)  # fmt: skip
NAMESPACES = frozenset({"torch.nn", "torch.compiler", "torch._dynamo", "lightning.pytorch"})
GIVEN = frozenset(
    """
    abs all any bool dict enumerate filter float getattr hasattr id int isinstance iter len list map max min next print
    range reversed set setattr sorted str sum tuple type zip
    """.split()  # noqa: SIM905  # a list of so many names reads best as a block
)
OF_VALUES = frozenset(
    """
    __module__ __name__ add append children compile dim eval forward get get_submodule items keys load_state_dict
    model modules named_children named_modules named_parameters parameters partition pop
    register_load_state_dict_pre_hook register_state_dict_post_hook removeprefix removesuffix replace requires_grad
    shape size split startswith state_dict train training update values
    """.split()  # noqa: SIM905
)
BY_NAME = frozenset({"getattr", "hasattr", "setattr"})
OF_CLASSES = frozenset({"__module__", "__name__"})
COMPILES = frozenset({"torch.compile", "torch._dynamo.optimize"})
OPTIONS = frozenset({"model", "backend", "dynamic", "fullgraph", "nopython"})
OF_NONE = frozenset({"mode", "options"})
IMPORTS = imports(SETUP_CELLS["lightning_training"])
THERE = {(each.name, each.module) for each in IMPORTS if each.name in MODULES}
# What the rules take by its name. Other names of GIVEN may be variables: with both meanings they are allowed.
TAKEN = BY_NAME | MODULES | {"type", "list", "tuple", *PARAMETERS, ENTRY}
# What a name can mean where no variable has it: a variable is read only where it has it, which is never at the top.
# IPython puts `_` among the builtins.
OUTSIDE = {*dir(builtins), *(each.name for each in IMPORTS)} - GIVEN - TAKEN - {"_"}


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
        self._tree, every = tree, list(ast.walk(tree))
        self._repeated = {id(each) for node in every if _repeats_the_set_up(node) for each in ast.walk(node)}
        self._nodes = [node for node in every if id(node) not in self._repeated]
        self._entries = [n for n in self._nodes if isinstance(n, ast.FunctionDef) and n.name == ENTRY]
        self._parameters = {id(arg) for entry in self._entries for arg in entry.args.args}
        names = [node for node in self._nodes if isinstance(node, ast.Name)]
        self._own = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | {"task"}
        self._own |= {node.arg for node in self._nodes if isinstance(node, ast.arg)}
        self._own |= {node.name for node in self._nodes if isinstance(node, ast.FunctionDef)} - {ENTRY}
        self._known = self._own | GIVEN
        self._outside = reads_from_outside(tree, OUTSIDE)
        self._at_the_top = {id(each) for each in tree.body}
        self._helpers = Helpers(self._nodes, {*PARAMETERS}, ENTRY)
        self._before_dots = {id(node.value) for node in self._nodes if isinstance(node, ast.Attribute)}
        self._called = {id(node.func) for node in self._nodes if isinstance(node, ast.Call)}
        self._handed = {id(each) for node in self._nodes for each in _handed_on(node)} | self._helpers.handed
        decorators = [e for node in self._nodes if isinstance(node, ast.FunctionDef) for e in node.decorator_list]
        self._decorates = {id(each) for each in decorators if _dotted(each) == "torch.compile"}
        self._classes = {id(each) for node in self._nodes for each in _where_classes_are_read(node)}
        self._of_children = reads_of_childrens_names(tree)

    def problems(self) -> Iterator[tuple[int, str]]:
        """Give what does not belong to the language, with its line."""
        parameters = [[arg.arg for arg in ast.walk(each.args) if isinstance(arg, ast.arg)] for each in self._entries]
        alone = len(self._parameters) == len(PARAMETERS) and not self._entries[0].decorator_list
        if parameters != [[*PARAMETERS]] or not alone:
            yield 1, f"define {ENTRY}(task, backend) once, with these two parameters and no decorator."
        for statement in self._tree.body:
            if not isinstance(statement, ast.FunctionDef | ast.Expr) and id(statement) not in self._repeated:
                yield statement.lineno, "write functions only; the notebook's imports are there."
        for node in self._nodes[1:]:
            for problem in self._of(node):
                yield getattr(node, "lineno", 1), problem

    def _of(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield f"import nothing; of the notebook's imports {', '.join(sorted(MODULES))} are there."
        elif not isinstance(node, (*NODES, ast.alias)):
            yield f"{type(node).__name__} is not allowed here. Compile the parts in a loop, by functions if you like."
        elif isinstance(node, ast.FunctionDef) and node not in self._entries:
            yield from _of_new_name(node.name, OUTSIDE if id(node) in self._at_the_top else ())
        elif isinstance(node, ast.arg) and id(node) not in self._parameters | self._helpers.parameters:
            if node.arg in PARAMETERS:
                yield (
                    f"a parameter is called {node.arg} only in a function by def, which is called by its own name, and "
                    f"gets {node.arg} in each call."
                )
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
                yield (
                    "the backend is handed on only as backend=backend to torch.compile, or to a parameter named "
                    "backend of a function that you define by def."
                )
        elif node.id not in self._known or id(node) in self._outside:
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
        elif (node.attr == "compile" or dotted in COMPILES) and id(node) not in self._called | self._decorates:
            yield f"{dotted or 'compile'} is called where it is named, and gets no other name."

    def _of_call(self, node: ast.Call) -> Iterator[str]:
        called = named(node.func)
        if called == "type" and id(node) not in self._classes:
            yield "the result of type is compared, or asked for its __name__ or __module__."
        if called in BY_NAME:
            name = node.args[1] if len(node.args) > 1 and not isinstance(node.args[0], ast.Starred) else None
            allowed = (
                {"forward"} if called == "setattr" else OF_VALUES - ({"compile"} if called == "getattr" else set())
            )
            if id(name) not in self._of_children and not (isinstance(name, ast.Constant) and name.value in allowed):
                yield (
                    f"{called} takes the written name of an attribute, such as 'forward', or a name from "
                    "`for name, part in task.named_children()`. For the parts of another module write "
                    "`for part in module.children(): part.forward = torch.compile(part.forward, backend=backend)`."
                )
        known = all(isinstance(each, ast.Constant) or named(each) == "backend" for each in _handed_on(node))
        options = {each.arg for each in node.keywords if each.arg not in OF_NONE or not _is_none(each.value)}
        if _compiles(node) and not (known and options <= OPTIONS):
            yield (
                "compile with the options backend=backend, dynamic and fullgraph, written in the call, and no others. "
                "A function of yours gets the backend as its parameter backend."
            )


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _repeats_the_set_up(node: ast.AST) -> bool:
    """Tell whether a statement imports modules of the language as the notebook's set-up cell does."""
    if isinstance(node, ast.Import):
        return {(each.asname or each.name.partition(".")[0], each.name) for each in node.names} <= THERE
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {(each.asname or each.name, f"{node.module}.{each.name}") for each in node.names} <= THERE
    return False


def _of_new_name(name: str, taken: Collection[str] = ()) -> Iterator[str]:
    if name.startswith("__") or name in TAKEN or name in taken:
        yield f"take another name than {name[:40]}."


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


def _dotted(node: ast.AST) -> str:
    """Return what an expression such as `torch.compile` names; empty if it begins with no module."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([named(node), *reversed(parts)]) if named(node) in MODULES else ""
