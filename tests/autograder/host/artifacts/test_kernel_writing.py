"""Only what the host wrote of an answer's kernels runs: nothing that is put anywhere else in their text."""

import ast
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.host.artifacts.kernel_source import checked_kernels
from autograder.host.artifacts.kernel_writing import KernelRefusedError, constant, written
from autograder.protocol.requests.loads import Part
from autograder.worker.kernel_texts import interpreted_names

ODD = """
@triton.jit(
    noinline=True,
)
def kernel(
    x_ptr, n, BLOCK: "tl.constexpr", M: tl.constexpr = 4
) -> None:
    '''Two
    lines.'''
    at = (tl.program_id(0)
          * BLOCK); x = tl.load(x_ptr + at)
    S: tl.constexpr = 2
    y: tl.tensor = x
    if n > 1: x = x + 1; y = x
    elif n > 2:
        pass
    else: x = (x +
               2)
    if n > 3:
        x = x
    else:

        if n > 4:
            x = -x ** 2
        y = x
    while n > 5: n -= 1
    for i in range(3): x += i

    tl.store(x_ptr + at, x, mask=at[:, None] < n)
def launcher(x, p: float, like: torch.Tensor) -> tuple: return x
"""
AS_WRITTEN = """
@triton.jit


def kernel(x_ptr, n, BLOCK: tl.constexpr, M: tl.constexpr=4):


    pass

    at = tl.program_id(0) * BLOCK
    x = tl.load(x_ptr + at)
    S: tl.constexpr = 2
    y = x
    if n > 1: x = x + 1; y = x
    elif n > 2:
        pass
    else: x = x + 2

    if n > 3:
        x = x

    else:
        if n > 4:
            x = -x ** 2
        y = x
    while n > 5: n -= 1
    for i in range(3): x += i

    tl.store(x_ptr + at, x, mask=at[:, None] < n)
def launcher(x, p: float, like): return x"""
F_STRING = r"def launcher(x):\n    y = f'\'; x = 2 #{x}\"{x}\'\'\'{x}\"\"\"z'".replace(r"\n", "\n")
"""One with each kind of quotes between its braces, which Python 3.11.2 writes so that `x = 2` is code."""
CONSTANTS = {
    "1 << 20": 1 << 20, "-3": -3, "2 ** -1": 0.5, "'text'": "text", "None": None, "not 1": False, "7 // 2 * 3 % 4": 1,
    "1e308 * 10": float("inf"), "3 if 0 else 1": "something other", "10 ** 10 ** 8": "more than 64",
    "1 << 65": "more than 64",
    "2 ** 64 + 1": "beyond 64 bits", "(-1) ** 0.5": "no real number", "1e308 * 10 - 1e308 * 10": "no real number",
    "1 / 0": "zero", "'a' * 9": "something other", "1j": "something other", "print(1)": "something other",
    "2.0 ** 9999": "out of range", "~1.0": "bad operand", "1 @ 1": "something other",
}  # fmt: skip


def test_each_statement_is_written_in_its_line() -> None:
    assert written(ast.parse(ODD).body) == AS_WRITTEN
    assert checked_kernels({"answer": ODD.replace("x_ptr + at, x,", "x_ptr + at, y,")}).launchers
    assert written(ast.parse(AS_WRITTEN).body) == AS_WRITTEN.replace(
        "\n    else:\n        if n", "\n    else:\n        if n"
    )


def test_an_f_string_is_written_as_the_same_program_or_refused() -> None:
    with contextlib.suppress(KernelRefusedError):
        assert ast.dump(ast.parse(written(ast.parse(F_STRING).body))) == ast.dump(ast.parse(F_STRING))


@pytest.mark.parametrize(("text", "value"), CONSTANTS.items())
def test_a_constant_is_computed_within_bounds(text: str, value: Any) -> None:
    node = ast.parse(f"({text})", mode="eval").body
    if isinstance(value, str) and "'" not in text:
        with pytest.raises((ValueError, ArithmeticError, TypeError), match=value):
            constant(node)
        with pytest.raises(KernelRefusedError, match="neither a function nor a constant"):
            checked_kernels({"answer": f"A = {text}"})
    elif value == "something other":
        with pytest.raises(ValueError, match=value):
            constant(node)
    else:
        assert constant(node) == value


@pytest.mark.parametrize(
    "text",
    ["A: {} = 1", "A: tl.constexpr = {}", "A = tl.constexpr({}, 1)", "@triton.jit(noinline={})\ndef k(x):\n    x = 1"],
)
def test_a_mark_at_the_margin_does_not_run(text: str, mark: "Mark") -> None:
    mark.require_not_run(ast.parse(text.format(mark.text)).body)


class Mark:
    """An expression that reaches Python without a name, and makes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        subclasses = "().__class__.__base__.__subclasses__()"
        self.text = (
            f"[each for each in {subclasses} if each.__name__ == 'BuiltinImporter'][0].load_module('builtins')"
            f".open({str(file)!r}, 'w')"
        )

    @property
    def node(self) -> ast.expr:
        """Return the expression."""
        return ast.parse(self.text, mode="eval").body

    def require_not_run(self, statements: list[Any]) -> None:
        """Have the host write and check the statements, and run and call what it wrote as the worker does."""
        assert not self.file.exists()
        try:
            text = checked_kernels({"answer": written(statements)}).parts["answer"]
        except KernelRefusedError:
            pass
        except (TypeError, ValueError, KeyError, AttributeError):
            with pytest.raises((TypeError, ValueError)):  # no text of Python has such a tree
                compile(ast.Module(statements, []), "tree", "exec")
        else:
            run(text)
        assert not self.file.exists()


def run(text: str) -> None:
    """Run a text as the worker does, and call its functions; what that raises does not matter."""
    with contextlib.suppress(Exception):
        for function in interpreted_names((Part("answer", text),)).values():
            if hasattr(function, "__code__"):
                with contextlib.suppress(Exception):
                    function(*[1] * function.__code__.co_argcount)


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mark:
    """Return a mark that has not run; no compiler starts, which would be asked about launches that never come."""
    monkeypatch.setattr("course_lib.kernel_programs.compiler_check.CompilerCheck", lambda texts: None)
    return Mark(tmp_path / "ran")


def test_the_mark_runs_where_nothing_holds_it(mark: Mark) -> None:
    exec(f"A: {mark.text} = 1", {"__builtins__": {}})
    assert mark.file.exists()


def of_a_node(kind: type[ast.AST], field: str, value: Any) -> ast.AST:
    """Return a node with `value` in one field, and something plain in each other one that it needs."""
    plain: dict[str, Any] = {
        "name": "f", "id": "x", "attr": "shape", "arg": "x", "module": "torch", "names": [ast.alias("torch")],
        "level": 0, "value": ast.Constant(1), "target": ast.Name("x", ast.Store()), "test": ast.Constant(1),
        "targets": [ast.Name("x", ast.Store())], "iter": ast.parse("range(2)", mode="eval").body, "op": ast.Add(),
        "body": [ast.Pass()], "args": [], "keywords": [], "orelse": [], "decorator_list": [], "bases": [],
        "func": ast.Name("float", ast.Load()), "left": ast.Constant(1), "right": ast.Constant(1), "ctx": ast.Load(),
        "elts": [], "values": [ast.Constant(1)], "ops": [ast.Lt()], "comparators": [ast.Constant(1)],
        "operand": ast.Constant(1), "slice": ast.Constant(0), "annotation": ast.Name("int", ast.Load()), "simple": 1,
        "conversion": -1, "items": [], "handlers": [], "finalbody": [], "cases": [], "generators": [], "keys": [],
        "elt": ast.Constant(1), "key": ast.Constant(1), "defaults": [], "kw_defaults": [], "kwonlyargs": [],
        "posonlyargs": [], "type_params": [], "is_async": 0, "exc": None, "subject": ast.Constant(1), "cls": None,
    }  # fmt: skip
    if kind in (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef):
        plain["args"] = ast.parse("lambda: 1", mode="eval").body.args  # type: ignore[attr-defined]  # of a lambda
    if kind in (ast.Lambda, ast.IfExp, ast.Expression):
        plain |= {"body": ast.Constant(1), "orelse": ast.Constant(1)}
    plain |= {"op": ast.USub()} if kind is ast.UnaryOp else {"op": ast.Or()} if kind is ast.BoolOp else {}
    fields = {each: plain[each] for each in kind._fields if each in plain}
    return kind(**{**fields, field: value})


class TypeVar(ast.AST):
    """A parameter of a type, as Python 3.12 has it."""

    _fields = ("name", "bound", "default_value")


class TypeAlias(ast.stmt):
    """A statement `type name = value`, as Python 3.12 has it."""

    _fields = ("name", "type_params", "value")


class TemplateStr(ast.expr):
    """A text `t"..."`, as Python 3.14 has it."""

    _fields = ("values",)


def kinds() -> Iterator[tuple[type[ast.AST], str]]:
    """Yield each node of Python with each of its fields, those of newer versions included."""
    newer = {"FunctionDef": ("type_params",), "ClassDef": ("type_params",), "AsyncFunctionDef": ("type_params",)}
    found = [each for each in vars(ast).values() if isinstance(each, type) and issubclass(each, ast.AST)]
    found = [each for each in found if "Deprecated" not in (each.__doc__ or "")]
    for kind in dict.fromkeys([*found, TypeVar, TypeAlias, TemplateStr]):
        for field in dict.fromkeys((*kind._fields, *newer.get(kind.__name__, ()), "type_comment", "unheard_of")):
            yield kind, field


@pytest.mark.parametrize(("kind", "field"), kinds(), ids=lambda part: getattr(part, "__name__", part))
def test_a_mark_in_any_field_of_any_node_is_refused_or_not_run(
    kind: type[ast.AST], field: str, mark: Mark, monkeypatch: pytest.MonkeyPatch
) -> None:
    if field not in kind._fields:  # of a newer Python
        monkeypatch.setattr(kind, "_fields", (*kind._fields, field))
    marks = (mark.node, [mark.node], [ast.Expr(mark.node)], mark.text, [mark.text])
    for value in (*marks, [of_a_node(TypeVar, "bound", mark.node)]):
        node = of_a_node(kind, field, value)
        for statements in placed(node):
            module = ast.fix_missing_locations(ast.Module(statements, []))
            for number, statement in enumerate(module.body, start=1):
                statement.lineno = number
            mark.require_not_run(module.body)


def placed(node: ast.AST) -> Iterator[list[Any]]:
    """Yield modules that have a node at the margin, in a launcher and in a kernel, wherever it fits."""
    if isinstance(node, ast.stmt):
        yield [node]
        inner: list[Any] = [node]
    elif isinstance(node, ast.expr):
        yield [ast.Assign([ast.Name("A", ast.Store())], node)]
        inner = [ast.Expr(node), ast.Assign([ast.Name("y", ast.Store())], node)]
    elif isinstance(node, ast.keyword):
        inner = [ast.Expr(ast.Call(ast.Name("float", ast.Load()), [], [node]))]
    elif isinstance(node, ast.operator):
        inner = [ast.Expr(ast.BinOp(ast.Constant(1), node, ast.Constant(1)))]
    elif isinstance(node, ast.arguments):
        inner = [ast.Expr(ast.Lambda(node, ast.Constant(1)))]
    elif isinstance(node, ast.arg):
        inner = [ast.Pass()]
    else:
        inner = [ast.Expr(node)]  # where no parser puts it
    for decorators in ([], [ast.parse("triton.jit", mode="eval").body]):
        function: Any = ast.parse("def f(x):\n    pass").body[0]
        function.decorator_list = decorators
        if isinstance(node, ast.arguments):
            function.args = node
        elif isinstance(node, ast.arg):
            function.args.args = [node]
        function.body = inner
        yield [function]
