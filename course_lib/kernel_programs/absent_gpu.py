"""Compile a kernel for a GPU that is not here, and count what its instructions say.

A process of its own compiles, since a Triton that interprets cannot. Nothing of the kernel runs. Checked with
triton 3.7.1, which brings its own assembler; without it, only the instructions of PTX are counted.
"""

import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.errors import KernelError

LIMIT_S = 120
_CHILD = Path(__file__).with_name("absent_gpu_child.py")


@dataclass(frozen=True)
class GpuCode:
    """What one program of a kernel becomes on a GPU; None stands for what this machine cannot tell."""

    name: str
    registers: int | None
    """Registers of a thread."""
    spilled_bytes: int | None
    """Bytes of a thread's local memory, which hold what found no register."""
    loads: Mapping[str, int]
    """Instructions that read global memory, such as `ld.global.v4.b32` for four numbers at a time, and their count."""
    stores: Mapping[str, int]
    ptx: str

    def __str__(self) -> str:
        def listed(counts: Mapping[str, int]) -> str:
            return ", ".join(f"{count} × {name}" for name, count in counts.items()) or "none"

        told = ("unknown" if n is None else str(n) for n in (self.registers, self.spilled_bytes))
        of_thread = "registers of a thread {}, bytes spilled {}".format(*told)
        return f"{self.name}: {of_thread}; reads {listed(self.loads)}; writes {listed(self.stores)}"

    __repr__ = __str__


def compile_for_absent_gpu(
    kernel: Any, types: Mapping[str, str], constants: Mapping[str, int], *, capability: int = 90
) -> GpuCode:
    """Return the code of a kernel, given the type of each argument and the compile-time constants.

    >>> compile_for_absent_gpu(add_kernel, {"x_ptr": "*fp32", "n": "i32"}, {"BLOCK": 1024})  # doctest: +SKIP

    Pointers are taken to be divisible by 16, as those of PyTorch's allocator are, and integers of type `i32:16` too.
    The text may use `tl` and `triton` only. Raises `KernelError` with the compiler's words if it does not compile.
    """
    function = getattr(kernel, "fn", kernel)
    asked = {"types": dict(types), "constants": dict(constants), "name": function.__name__, "capability": capability}
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    with tempfile.TemporaryDirectory() as folder:
        source = "import triton\nimport triton.language as tl\n\n\n" + inspect.getsource(function)
        (Path(folder) / "kernel_text.py").write_text(source, "utf-8")
        try:
            done = subprocess.run(
                [sys.executable, str(_CHILD), folder],
                input=json.dumps(asked),
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                env=environment | {"TRITON_CACHE_DIR": folder},
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise KernelError(
                f"{asked['name']} was not compiled for sm_{capability} within {LIMIT_S} s. Take a smaller block."
            ) from None
    if done.returncode != 0:
        raise KernelError(f"{asked['name']} does not compile for sm_{capability}: {done.stderr.strip()[-800:]}")
    return GpuCode(name=str(asked["name"]), **json.loads(done.stdout))
