"""Check the text of operators of PyTorch, which a clean worker then runs without the student's other Python.

Each node of the tree is looked at. Names are the text's own or those that the worker gives, attributes are on a list,
and operators are registered under names of a lesson, for devices and not for autograd. PyTorch evaluates annotations
that are texts, so none stays a text. The host writes the text that runs from the tree. So the schema, the fake kernel
and the derivative are those of the text, and what the worker sees of them is what they do.
"""

import ast
import contextlib
import re
from collections import Counter
from collections.abc import Iterator

from autograder.host import source_text
from autograder.host.artifacts.kernel_writing import short
from autograder.host.source_text import UnreadableSourceError, parsed, unparsed
from course_lib.graph.data.targets import ATTRIBUTES, DTYPES, METHODS, functions

MAX_CHARACTERS, MAX_ANNOTATION = 40_000, 200
NODES = (
    ast.Module, ast.FunctionDef, ast.Lambda, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.Expr,
    ast.If, ast.For, ast.With, ast.withitem, ast.Pass, ast.Assert, ast.Raise, ast.BoolOp, ast.BinOp, ast.UnaryOp,
    ast.IfExp, ast.Compare, ast.Call, ast.keyword, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Name,
    ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Starred, ast.ListComp, ast.GeneratorExp, ast.comprehension,
    ast.JoinedStr, ast.FormattedValue, ast.AnnAssign,
    ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
IMPORTS = {
    "import math",
    "import torch",
    "import torch.library",
    "from __future__ import annotations",
    "from collections.abc import Sequence",
    *(f"from typing import {each}" for each in ("Any", "List", "Optional", "Sequence", "Tuple", "Union")),
    "from torch import Tensor",
    "from torch import nn",
    "from torch.library import custom_op",
    "from torch.nn import functional as F",
    "import torch.nn.functional as F",
    "from course_lib.kernels.dropout import uniform_numbers",
    "from course_lib.kernel_programs.interpreter import triton_runs_on",
}
LOOKS = frozenset({"print", "torch.library.opcheck"})  # statements that do nothing but look
MODULES = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "math": "math"}
GIVEN = frozenset(
    "Tensor custom_op uniform_numbers triton_runs_on launcher add_norm add_norm_backward abs all any bool divmod "  # noqa: SIM905
    "enumerate float int isinstance len list max min range reversed slice str sum tuple zip List Optional Sequence "
    "Tuple Union Any NotImplementedError RuntimeError TypeError ValueError".split()
)  # names that the worker gives, beside the modules
TYPES = frozenset(
    "Tensor torch.Tensor int float bool str None ... list tuple List Optional Sequence Tuple Union Any".split()  # noqa: SIM905
)  # of these words, between brackets, commas and bars, an annotation is made
ANNOTATIONS = (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp)
KNOWN = GIVEN | MODULES.keys()
KEPT = frozenset({*MODULES, *TYPES, "custom_op"})  # which a text may not take for something else
REGISTERS = re.compile(r"custom_op|torch\.library\.(custom_op|define|impl|register_fake|register_autograd|Library)")
REGISTERING = frozenset({"define", "impl"})  # methods of a library; what they are given is checked, too
DEVICES = frozenset({"CPU", "CUDA", "Meta", "CompositeExplicitAutograd", "DEF", "FRAGMENT"})
OF_TORCH = frozenset(
    "Tensor Size _check autograd.grad contiguous_format empty empty_like enable_grad finfo native_layer_norm no_grad "  # noqa: SIM905
    "preserve_format scalar_tensor special.expit tensor".split()
)
OF_CONTEXTS = frozenset(
    {"mark_non_differentiable", "needs_input_grad", "save_for_backward", "saved_tensors", "set_materialize_grads"}
)
_OF_VALUES = """
    append as_strided copy default element_size eps expand extend index_copy_ is_contiguous is_floating_point item
    layout new_empty new_tensor register_autograd register_fake register_kernel requires_grad requires_grad_ shape
    stride sum_to_size tolist zero_
"""
OF_VALUES = METHODS | ATTRIBUTES | REGISTERING | OF_CONTEXTS | {*_OF_VALUES.split()}
NAMESPACES = re.compile(r"torch\.(nn|nn\.functional|library|autograd|special|ops|ops\.aten|ops\.lesson\d\d)")
OWN_OPERATOR = re.compile(r"torch\.ops\.lesson\d\d\.[a-z]\w*(\.default)?")
# Such attributes may lead to Python's own objects, or register, or all contexts have them.
NOT_SAVED = re.compile(rf"_|(ag|co|cr|f|func|gi|tb)_|register|({'|'.join(OF_CONTEXTS | REGISTERING)})$")


class OperatorTextRefusedError(Exception):
    """The text leaves the small language; the message is for the student."""


def checked_operator_text(text: str) -> str:
    """Return a text that is written from the tree, each statement in its line; raises `OperatorTextRefusedError`."""
    try:
        tree = parsed(text, most=MAX_CHARACTERS)
        tree.body = [each for each in tree.body if not _is_given(each)]
        _write_annotations(tree)
        _Text(tree).check()
        return source_text.text_in_lines(tree)
    except UnreadableSourceError as error:
        raise OperatorTextRefusedError(f"The answer cannot be read: {error}.") from None


def _is_given(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return source_text.imports(statement, IMPORTS)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return unparsed(statement.value.func) in LOOKS
    if isinstance(statement, ast.FunctionDef) and statement.name == "launcher":  # reads the notebook's names
        return True
    return source_text.is_main_guard(statement)


def _write_annotations(tree: ast.Module) -> None:
    """Make each annotation of its text without quotes, if it has the words of annotations only."""
    nodes = list(ast.walk(tree))
    bound, known = _bound_names(nodes), set(TYPES)
    for each in (statement for statement in tree.body if isinstance(statement, ast.Assign)):
        if isinstance(each.value, ANNOTATIONS) and _words(unparsed(each.value)) <= TYPES:  # such as `T = torch.Tensor`
            known |= {t.id for t in each.targets if isinstance(t, ast.Name) and bound[t.id] == 1}
    for node in nodes:
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.FunctionDef) and node.returns:
            node.returns = _annotation(node.returns, known)
        elif isinstance(node, ast.arg) and node.annotation:
            node.annotation = _annotation(node.annotation, known)


def _annotation(node: ast.expr, known: set[str]) -> ast.expr:
    if _words(text := unparsed(node).replace("'", "")) <= known:
        with contextlib.suppress(UnreadableSourceError, AttributeError, IndexError):
            return parsed(text, most=MAX_ANNOTATION).body[0].value  # type: ignore[attr-defined]
    raise OperatorTextRefusedError(
        f"Line {node.lineno} of the operators has an annotation that is not read there. Write torch.Tensor, int, "
        "float, bool, str or None, or list, tuple, Sequence or Optional of them."
    )


def _words(annotation: str) -> set[str]:
    return set(re.split(r"[\[\], |]+", annotation)) - {""}


class _Text:
    """The tree of a text, its own names, and what is where in it."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        nodes = list(ast.walk(tree))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        functions_ = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
        self._own = bound = _bound_names(nodes)
        self._called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        self._before_dots = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        derivatives = {id(each): each.id for each in _derivatives(tree, bound)}
        others = {node.id for node in names if id(node) not in derivatives}
        own = [functions_[name] for name in functions_.keys() & {*derivatives.values()} - others]
        firsts = Counter(each.args.args[0].arg for each in own if each.args.args and not each.decorator_list)
        self._contexts = {name for name in firsts if firsts[name] == bound[name]}
        """Parameters that only PyTorch fills, in which forward saves; no name that anything else may have."""
        self._saved = {node.attr for node in nodes if isinstance(node, ast.Attribute) and not _is_read(node)}
        self._inside = source_text.ids_under(own)

    def check(self) -> None:
        """Raise `OperatorTextRefusedError` for a node that is not allowed."""
        for node in ast.walk(self._tree):
            for problem in self._problems(node):
                line = f"line {node.lineno}: " if hasattr(node, "lineno") else ""
                raise OperatorTextRefusedError(
                    f"The text of the operators runs alone, in a worker that knows PyTorch and no other code: {line}"
                    f"`{short(node)}`: {problem}"
                )

    def _problems(self, node: ast.AST) -> Iterator[str]:
        if not isinstance(node, NODES):
            yield f"{type(node).__name__} is not read there. Use functions, and register them with custom_op."
        if isinstance(node, ast.FunctionDef | ast.arg):
            yield from _of_new_name(node.name if isinstance(node, ast.FunctionDef) else node.arg)
        if isinstance(node, ast.Name):
            yield from self._of_name(node)
        if isinstance(node, ast.Attribute):
            yield from self._of_attribute(node)
        if isinstance(node, ast.Call):
            yield from _of_call(node)

    def _of_name(self, node: ast.Name) -> Iterator[str]:
        if not _is_read(node):
            yield from _of_new_name(node.id)
        elif node.id in MODULES and id(node) not in self._before_dots:
            yield "a module is only read, as in torch.cat."
        elif node.id not in self._own and node.id not in KNOWN:
            yield "this name is neither defined in the answer's cell nor known there."
        elif node.id == "custom_op" and id(node) not in self._called:
            yield "call custom_op where you register."

    def _of_attribute(self, node: ast.Attribute) -> Iterator[str]:
        dotted = _dotted(node)
        if not _is_read(node):
            if not self._is_saved(node):
                yield "an attribute is set only of `ctx`, in a function that register_autograd gets."
        elif NAMESPACES.fullmatch(dotted):
            if id(node) not in self._before_dots:
                yield "a module is only read, as in torch.cat."
        elif dotted and not _is_of_torch(dotted):
            yield "this is not among the functions that operators may call."
        elif (REGISTERS.fullmatch(dotted) or node.attr in REGISTERING) and id(node) not in self._called:
            yield "call it where you register."
        elif not dotted and node.attr not in OF_VALUES and not self._is_saved(node):
            yield "this attribute is not among those that operators may read."

    def _is_saved(self, node: ast.Attribute) -> bool:
        """Tell whether it is an attribute that the text saves in a context."""
        of_context = isinstance(node.value, ast.Name) and node.value.id in self._contexts and id(node) in self._inside
        return of_context and node.attr in self._saved and not NOT_SAVED.match(node.attr)


def _bound_names(nodes: list[ast.AST]) -> Counter[str]:
    """Count how often a text binds each name: assigns it, or calls a function or a parameter so."""
    names = [each.id for each in nodes if isinstance(each, ast.Name) and not _is_read(each)]
    functions_ = [each.name for each in nodes if isinstance(each, ast.FunctionDef)]
    return Counter([*names, *functions_, *(each.arg for each in nodes if isinstance(each, ast.arg))])


def _derivatives(tree: ast.Module, bound: Counter[str]) -> Iterator[ast.Name]:
    """Yield what an operator of the text gets at the left margin, by register_autograd."""
    operators = Counter(_names_of_operators(tree))
    at_the_margin = [each.value for each in tree.body if isinstance(each, ast.Expr)]
    for call in (each for each in at_the_margin if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)):
        operator, method = unparsed(call.func.value), call.func.attr  # type: ignore[attr-defined]  # an attribute
        of_text = operator == "torch.library" or 0 < operators[operator] == bound[operator]
        if method == "register_autograd" and of_text:
            given = [*call.args, *(each.value for each in call.keywords)]
            yield from (each for each in given if isinstance(each, ast.Name))


def _names_of_operators(tree: ast.Module) -> Iterator[str]:
    """Yield each name where it becomes an operator, or a plain function, which registers nothing."""
    for each in tree.body:
        if isinstance(each, ast.FunctionDef) and [*map(_is_operator, each.decorator_list)] in ([], [True]):
            yield each.name
        elif isinstance(each, ast.Assign) and _is_operator(each.value):
            yield from (target.id for target in each.targets if isinstance(target, ast.Name))


def _is_operator(node: ast.AST) -> bool:
    while isinstance(node, ast.Call):  # also custom_op(...)(function)
        node = node.func
    return unparsed(node) in ("custom_op", "torch.library.custom_op")


def _of_new_name(name: str) -> Iterator[str]:
    if name.startswith("__") or name in KEPT:
        yield "take another name."


def _of_call(node: ast.Call) -> Iterator[str]:
    """Say what is wrong with a call that registers."""
    name = node.func.id if isinstance(node.func, ast.Name) else _dotted(node.func)
    method = node.func.attr if isinstance(node.func, ast.Attribute) and node.func.attr in REGISTERING else ""
    if not REGISTERS.fullmatch(name) and not method:
        return
    written = [each.value for each in node.args if isinstance(each, ast.Constant)]
    if not node.args or not isinstance(node.args[0], ast.Constant):
        yield "write the operator's name as a string."
    elif not method and not re.match(r"lesson\d\d\b", str(written[0])):
        yield "the operator's name begins with the lesson, as in the task."
    if not all(isinstance(each, ast.Constant | ast.Name | ast.Lambda) for each in node.args):
        yield "name the function that is registered."
    for_device = name.endswith((".impl", ".Library")) or method == "impl"
    if for_device and (len(written) != 2 or written[1] not in DEVICES or {k.arg for k in node.keywords} - {"lib"}):
        yield "an operator has kernels for devices: CPU, CUDA. Its derivative is for register_autograd."


def _is_read(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _dotted(node: ast.AST) -> str:
    """Return what an expression such as `F.silu` names in full; empty if it begins with no module."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return MODULES.get(node.id, "") if isinstance(node, ast.Name) else ""


def _is_of_torch(dotted: str) -> bool:
    library, _, name = dotted.partition(".")
    if library == "math":
        return not name.startswith("_")
    known = functions()
    packet = dotted.removesuffix(".default")
    return (
        name in OF_TORCH
        or name in DTYPES
        or bool(REGISTERS.fullmatch(dotted) or OWN_OPERATOR.fullmatch(dotted))
        or dotted in known
        or any(each.startswith(f"{packet}.") for each in known if packet.startswith("torch.ops.aten."))
    )
