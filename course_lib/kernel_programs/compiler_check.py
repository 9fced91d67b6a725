"""Check launches of kernels with Triton's compiler, for a GPU that is not here, where Triton itself interprets.

The interpreter runs Python on blocks, and so more than Triton compiles: `break`, variables that change their type. A
process of its own compiles, since a Triton that interprets cannot. It compiles as far as Triton refuses programs; none
of the kernel runs. Checked with triton 3.7.1: a start takes less than a second, and a launch some milliseconds.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from course_lib.kernel_programs.compiler_words import plain

_CHILD = Path(__file__).with_name("compiler_child.py")


class CompilerCheck:
    """Ask Triton's compiler about launches of the kernels of some texts, which use `tl` and `triton` only.

    >>> check = CompilerCheck({"cell": text})  # doctest: +SKIP
    >>> check.refusal("copy_kernel", (x, out, 10), {"BLOCK": 16})  # doctest: +SKIP
    ''

    Functions without a decorator are left out. Each launch with the same types and constants is compiled once.
    """

    def __init__(self, parts: Mapping[str, str]) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
        self._child = subprocess.Popen(
            [sys.executable, str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._parts = dict(parts)
        self._compiles: bool | None = None

    @property
    def compiles(self) -> bool:
        """Tell whether Triton has a compiler on this machine; one that ends on the texts is one."""
        if self._compiles is None:
            ready = self._asked(self._parts)
            self._compiles = ready is None or bool(ready["compiles"])
        return self._compiles

    def refusal(self, kernel: str, args: Sequence[Any], named: Mapping[str, Any]) -> str:
        """Return a sentence with what the compiler says against this launch, in plain English.

        It is empty for a launch that compiles, and for most where Triton has no compiler. A process that has ended
        refuses every launch.
        """
        _ = self.compiles  # the texts go first
        launch = {"kernel": kernel, "args": list(map(_written, args))}
        answer = self._asked({**launch, "named": {name: _written(arg) for name, arg in named.items()}})
        if answer is None:
            return f"Triton does not compile `{kernel}`: its compiler ended without a result."
        where = f", {answer['line']}" if answer["line"] else ""
        return answer["words"] and f"Triton does not compile `{kernel}`{where}: {plain(answer['words'])}"

    def _asked(self, question: Mapping[str, Any]) -> Any:
        """Return the answer of the other process, or None if it has ended."""
        assert self._child.stdin is not None, "both are pipes"
        assert self._child.stdout is not None, "both are pipes"
        try:
            self._child.stdin.write(json.dumps(question) + "\n")
            self._child.stdin.flush()
        except OSError:
            return None
        line = self._child.stdout.readline()
        return json.loads(line) if line else None

    def __del__(self) -> None:
        self._child.kill()
        self._child.wait()


def _written(arg: Any) -> Any:
    """Return what the other process needs of an argument."""
    if isinstance(arg, torch.Tensor):
        return {"tensor": [str(arg.dtype), arg.data_ptr() % 16]}
    if isinstance(arg, tuple):
        return {"tuple": list(map(_written, arg))}
    if isinstance(arg, bool | int | float | str | None):
        return arg
    if isinstance(arg, torch.dtype):
        return {"torch_dtype": str(arg)}
    if hasattr(arg, "fn"):
        return {"kernel": arg.fn.__name__}
    return {"constexpr": _written(arg.value)} if hasattr(arg, "value") else {"dtype": arg.name}
