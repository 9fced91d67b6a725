"""Texts of Triton kernels and launchers that the host wrote of an answer's, run for Triton's interpreter.

No Python of a student runs there. The texts are in the small language of
`autograder.host.artifacts.kernel_source`: kernels, and launchers that see the form of tensors and no values.
"""

import ast
import linecache
import math
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from autograder.protocol.requests.loads import Part
from autograder.worker.kernel_calls import LauncherCall, LauncherError, Operand

Names = dict[str, Any]
_FUNCTIONS = (abs, all, any, bool, dict, enumerate, float, int, isinstance, len, list, range, str, sum, tuple, zip)
BUILTINS: Names = {"math": math, **{each.__name__: each for each in _FUNCTIONS}}
MAKES_BLOCK = "__block"  # the host refuses names of a text that begin with two underscores
DTYPES = "float16 bfloat16 float32 float64 half float double int8 int16 int32 int64 uint8 int long bool".split()  # noqa: SIM905


def interpreted_names(parts: Sequence[Part], *, exact: bool = False) -> Names:
    """Run texts that the host wrote in one namespace, and return it: launchers, kernels and constants.

    With `exact`, float32 means float64 in the texts, and so does a number with a point. So kernels that compute in
    float32 are as exact as the rest of a program in double precision.
    """
    names = _namespace(exact, {part.name: part.text for part in parts})
    for part in parts:
        run_part(part, _interpreted(part.text), names)
    constants = {name: value.value for name, value in names.items() if hasattr(value, "value")}
    names |= constants  # in place, where kernels look: constexpr times a block is no block in the interpreter
    return names


def run_part(part: Part, tree: str | ast.Module, names: Names) -> None:
    """Run a text in `names`; Triton, and tracebacks, find its lines by the name of the part."""
    filename = f"<{part.name}>"
    linecache.cache[filename] = (len(part.text), None, part.text.splitlines(keepends=True), filename)
    exec(compile(tree, filename, "exec", dont_inherit=True), names)


def _interpreted(text: str) -> ast.Module:
    """Return the tree of a text whose kernels make a block of what they name.

    By itself the interpreter does this to lines of the text that it looks for, and these may lie in a comment.
    """
    tree = ast.parse(text)
    for kernel in tree.body:
        if isinstance(kernel, ast.FunctionDef) and kernel.decorator_list:
            for node in ast.walk(kernel):
                if isinstance(node, ast.Assign):
                    node.value = ast.Call(ast.Name(MAKES_BLOCK, ast.Load()), [node.value], [])
    return ast.fix_missing_locations(tree)


def _namespace(exact: bool, texts: Mapping[str, str]) -> Names:
    from course_lib.kernel_programs import interpreter_of_triton, patch_language_for_good, use_interpreter
    from course_lib.kernel_programs.compiler_check import CompilerCheck
    from course_lib.kernel_programs.quick_random import quick_rand

    check = None if exact else CompilerCheck(texts)  # first: its process starts while this one imports
    use_interpreter()
    interpreter = interpreter_of_triton()
    import triton
    import triton.language as tl

    patch_language_for_good(interpreter)
    semantic, kernels = interpreter.interpreter_semantic, _kernels(interpreter, check)
    of_launchers = torch_of_launchers(lambda *form: LauncherCall.current.make(*form))
    of_kernels = SimpleNamespace(**vars(tl) | {"rand": quick_rand(interpreter)})
    if exact:
        of_launchers.float32, of_kernels.float32 = torch.float64, tl.float64
        of_kernels.dot = _exact_dot(tl)

    def block(value: Any) -> Any:
        if exact and type(value) is float:
            return semantic.full((), value, tl.float64)
        return semantic.to_tensor(value, False)

    return {
        "__builtins__": BUILTINS | {"min": _of_blocks(tl.minimum, min), "max": _of_blocks(tl.maximum, max)},
        "__name__": "answer",
        MAKES_BLOCK: block,
        "tl": of_kernels,
        "triton": SimpleNamespace(jit=kernels, cdiv=triton.cdiv, next_power_of_2=triton.next_power_of_2),
        "torch": of_launchers,
    }


def _exact_dot(language: Any) -> Callable[..., Any]:
    """Return `tl.dot` with the result in float64 for factors in float64, whose default is float32."""

    def dot(first: Any, second: Any, *rest: Any, **named: Any) -> Any:
        if first.dtype is language.float64:
            named["out_dtype"] = language.float64
        return language.dot(first, second, *rest, **named)

    return dot


def _kernels(interpreter: Any, check: Any) -> type:
    """Return the class of kernels that the calls of launchers run, and that Triton's compiler must take, too."""

    class Kernel(interpreter.InterpretedFunction):
        def rewrite(self) -> Any:
            return self.fn  # as `_interpreted` made it

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if not LauncherCall.current.launching:
                raise LauncherError(
                    f"The launcher calls the kernel `{self.__name__}` without a grid. Write the number of programs "
                    f"before the arguments: {self.__name__}[(4,)](...)."
                )
            return super().__call__(*args, **kwargs)

        def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
            LauncherCall.current.launch(self, args, grid, kwargs)

        def run_on(self, args: Sequence[Any], grid: Any, kwargs: Mapping[str, Any], call: LauncherCall) -> None:
            call.uncompiled += bool(check and not check.compiles)
            call.refusal = call.refusal or (check.refusal(self.fn.__name__, args, kwargs) if check else "")
            try:
                if not call.refusal:
                    super().run(*args, grid=grid, warmup=False, **kwargs)
            except interpreter.InterpreterError as error:
                raise innermost(error, interpreter.InterpreterError) from None

    return Kernel


def _of_blocks(of_blocks: Callable[..., Any], of_numbers: Callable[..., Any]) -> Callable[..., Any]:
    """Return `min` or `max` as a kernel means it, whose operands may be blocks."""

    def chosen(*values: Any) -> Any:
        return (of_blocks if any(hasattr(value, "handle") for value in values) else of_numbers)(*values)

    return chosen


def torch_of_launchers(make: Callable[..., Operand]) -> SimpleNamespace:
    """Return what a launcher has of torch: dtypes, and new tensors, which `make` makes of their form."""

    def like(of: Operand, fill_value: float | None = None, **options: Any) -> Operand:
        return make(torch.empty_like(of._memory, **_on_meta(options)), fill_value)

    def new(fill_value: float | None) -> Callable[..., Operand]:
        return lambda *size, **options: make(torch.empty(*size, **_on_meta(options)), fill_value)

    return SimpleNamespace(
        Tensor=(Operand,),  # for isinstance; no launcher makes one by itself
        empty=new(None),
        empty_like=lambda of, **options: like(of, **options),
        empty_strided=lambda size, stride, **options: make(torch.empty_strided(size, stride, **_on_meta(options))),
        full=lambda size, fill_value, **options: make(torch.full(size, fill_value, **_on_meta(options)), fill_value),
        full_like=like,
        ones=new(1),
        ones_like=lambda of, **options: like(of, 1, **options),
        zeros=new(0),
        zeros_like=lambda of, **options: like(of, 0, **options),
        **{name: getattr(torch, name) for name in (*DTYPES, "contiguous_format", "preserve_format")},
    )


def _on_meta(options: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**options, "device": "meta"}


def innermost(error: BaseException, kind: type[BaseException]) -> BaseException:
    """Return the cause of errors of one kind, which Triton wraps around it for each function."""
    while isinstance(error, kind) and error.__cause__ is not None:
        error = error.__cause__
    return error
