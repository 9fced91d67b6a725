"""Ask Triton's compiler whether it takes launches of kernels, in a process of its own: `compiler_check` starts it.

    python compiler_child.py

The first line of standard input holds the texts of the kernels, each further line one launch. Each line of standard
output is one answer. The compiler stops after its own intermediate code (TTIR), which is where it refuses a program:
what follows is machine code for a GPU that is not here.
"""

import ast
import json
import linecache
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

CAPABILITY = 90
TAKEN = {"words": "", "line": ""}
BUILTINS = (abs, bool, float, int, isinstance, len, max, min, range, tuple)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def main() -> None:
    """Answer the lines of standard input until it ends."""
    try:
        AbsentGpu()
        compiles = True
    except Exception:  # this installation of Triton has no compiler for such a GPU
        compiles = False
    kernels = _kernels(json.loads(sys.stdin.readline()))
    _answer({"compiles": compiles})
    for line in sys.stdin:
        asked = json.loads(line)
        args = [_argument(each, kernels) for each in asked["args"]]
        named = {name: _argument(each, kernels) for name, each in asked["named"].items()}
        kernel = kernels[asked["kernel"]]
        words = _said_of_constants(kernel, args, named)
        _answer(words or (_said(kernel, args, named, kernels) if compiles else TAKEN))


def _answer(content: Mapping[str, Any]) -> None:
    print(json.dumps(content), flush=True)


class AbsentGpu:
    """What Triton asks a device before it compiles."""

    def __init__(self) -> None:
        from triton.backends.compiler import GPUTarget
        from triton.compiler import make_backend
        from triton.runtime import driver

        self._target = GPUTarget("cuda", CAPABILITY, 32)
        make_backend(self._target)
        driver.set_active(self)

    def get_current_device(self) -> int:
        """Return the number of the device."""
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        """Return the default stream."""
        return 0

    def get_current_target(self) -> Any:
        """Return what to compile for."""
        return self._target


class Pointer:
    """A tensor, as a kernel sees it: a type and an address."""

    def __init__(self, dtype: str, address: int) -> None:
        self.dtype, self._address = dtype, address

    def data_ptr(self) -> int:
        """Return the address, of which the compiler asks whether 16 divides it."""
        return self._address


@dataclass(frozen=True)
class TorchDtype:
    """A dtype of PyTorch, as a kernel sees it: it equals itself and no text."""

    name: str


def _kernels(parts: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the names that the texts define, launchers left out."""
    import triton
    import triton.language as tl

    offered = ModuleType("triton")  # the compiler takes names from modules only
    vars(offered).update(jit=_compiled(), cdiv=triton.cdiv, next_power_of_2=triton.next_power_of_2)
    builtins = {each.__name__: each for each in BUILTINS}
    names: dict[str, Any] = {"__builtins__": builtins, "__name__": "answer", "tl": tl, "triton": offered}
    names["torch"] = SimpleNamespace(**{name: TorchDtype(f"torch.{name}") for name in DTYPES})  # for constants
    for part, text in parts.items():
        filename = f"<{part}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        tree = ast.parse(text)
        tree.body = [each for each in tree.body if not isinstance(each, ast.FunctionDef) or each.decorator_list]
        exec(compile(tree, filename, "exec", dont_inherit=True), names)
    return names


def _compiled() -> type:
    """Return the class of kernels whose launches end after TTIR."""
    from triton._C.libtriton import ir
    from triton.compiler import ASTSource
    from triton.runtime.jit import JITFunction

    class Kernel(JITFunction):
        def _do_compile(
            self, key: Any, signature: Any, device: Any, constexprs: Any, options: Any, attrs: Any, warmup: bool
        ) -> Any:
            known, _, target, backend, _ = self.device_caches[device]
            context = ir.context()
            ir.load_dialects(context)
            backend.load_dialects(context)
            source = ASTSource(self, signature, constexprs, attrs)
            module = source.make_ir(
                target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
            )
            stages: dict[str, Callable[..., Any]] = {}
            backend.add_stages(stages, options, source.language)
            known[key] = SimpleNamespace(ttir=stages["ttir"](module, {}))
            return known[key]

    return Kernel


def _argument(asked: Any, kernels: Mapping[str, Any]) -> Any:
    """Return an argument of a launch from what `compiler_check` wrote of it."""
    if not isinstance(asked, dict):
        return asked
    import triton.language as tl

    ((kind, value),) = asked.items()
    if kind == "tensor":
        return Pointer(*value)
    if kind == "tuple":
        return tuple(_argument(each, kernels) for each in value)
    if kind == "kernel":
        return kernels[value]
    if kind == "torch_dtype":
        return TorchDtype(value)
    return tl.constexpr(_argument(value, kernels)) if kind == "constexpr" else tl.dtype(value)


def _said_of_constants(kernel: Any, args: list[Any], named: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what is said against a tensor for a `tl.constexpr`, which the interpreter would read without a load."""
    given = {**dict(zip(kernel.arg_names, args, strict=False)), **named}
    for parameter in kernel.params:
        if parameter.is_constexpr and _has_tensor(given.get(parameter.name)):
            words = (
                "is a tl.constexpr and gets a tensor; a constant is a number, a type or a text. Remove `: tl.constexpr`"
            )
            return {"words": f"its parameter `{parameter.name}` {words} from it.", "line": ""}
    return {}


def _has_tensor(value: Any) -> bool:
    return any(map(_has_tensor, value)) if isinstance(value, tuple) else isinstance(value, Pointer)


def _said(kernel: Any, args: list[Any], named: Mapping[str, Any], kernels: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the compiler's words about a launch, and the line that they are about; nothing if it takes the launch."""
    from triton.compiler import CompilationError

    try:
        kernel.run(*args, grid=None, warmup=True, **named)
    except CompilationError as error:
        while isinstance(error.__cause__, CompilationError):
            error = error.__cause__
        cause = error.__cause__
        words = error.error_message or (str(cause) if cause is not None else str(error))
        return {"words": words, "line": _line(error, kernels)}
    except Exception as error:
        return {"words": f"{type(error).__name__}: {error}", "line": ""}
    return TAKEN


def _line(error: Any, kernels: Mapping[str, Any]) -> str:
    """Return the number and the text of the line of an error; the compiler counts from the `def` of a kernel."""
    for kernel in kernels.values():
        if getattr(kernel, "src", None) == error.src and hasattr(error.node, "lineno"):
            above = kernel.raw_src.index(next(line for line in kernel.raw_src if line.startswith("def ")))
            number = error.node.lineno
            text = error.src.splitlines()[number - 1].strip()
            return f"line {kernel.starting_line_number + above + number - 1}, `{text}`"
    return ""


def _without_torch() -> None:
    """Have Triton find a `torch` with one class: it imports it to know tensors, and that would take seconds."""
    torch = ModuleType("torch")
    vars(torch)["Tensor"] = Pointer
    sys.modules["torch"] = torch


if __name__ == "__main__":
    del sys.path[0]  # its modules have names that others have, too
    _without_torch()
    main()
