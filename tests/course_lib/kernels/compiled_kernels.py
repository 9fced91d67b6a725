"""Compile the Triton kernels for a GPU that is not here, by the calls that run them: `test_triton.py` runs this alone.

    python compiled_kernels.py 90 bfloat16 [all]

The number is a compute capability; without "all", one variant of each kernel is compiled. Triton is told that such a
GPU is there, and each launch ends before the device would be asked for anything. Prints a line a kernel: its name, the
bytes of its program, and how it reads memory. For a backward kernel on sm_90 it prints more: how many programs the
registers allow at a time, of how many were assumed; bytes spilled; instructions and barriers in a turn of its loop.
The interpreter accepts what the compiler refuses, such as two branches that return different shapes.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver, jit

from course_lib.kernels.triton import bias_activation, residual_norm
from course_lib.kernels.triton.bias_activation import activate, activation_gradients
from course_lib.kernels.triton.residual_norm import ResidualNorm, norm_gradients, normalise
from course_lib.kernels.triton.tiles import persistent_programs

CAPABILITY, DTYPE = int(sys.argv[1]), getattr(torch, sys.argv[2])
ALL = "all" in sys.argv[3:]
CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
run = jit.JITFunction.run


class AbsentGpu:
    """What Triton asks a device before it compiles."""

    def get_current_device(self) -> int:
        """Return the number of the device."""
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        """Return the default stream."""
        return 0

    def get_current_target(self) -> GPUTarget:
        """Return what to compile for."""
        return GPUTarget("cuda", CAPABILITY, 32)


def compile_only(kernel: Any, *arguments: Any, warmup: bool, **options: Any) -> Any:
    """Compile instead of launching, and print what came out."""
    compiled = run(kernel, *arguments, warmup=True, **options)
    if compiled.metadata.name == "_total":  # of partial sums, after each backward kernel
        return compiled
    reads = sorted(set(re.findall(r"ld\.global[.\w]*", compiled.asm["ptx"])))
    print(compiled.metadata.name, len(compiled.asm["cubin"]), "bytes", *reads, *of_sm_90(compiled))
    return compiled


def of_sm_90(compiled: Any) -> list[str]:
    """Return what a backward kernel for sm_90 takes: programs at a time, bytes spilled, and a turn of its loop."""
    if compiled.metadata.name != "_backward" or CAPABILITY != 90:
        return []
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        told, code = (told_by_cuobjdump(option, file.name) for option in ("--dump-resource-usage", "-sass"))
    warps = compiled.metadata.num_warps
    registers, spilled = (int(re.findall(rf"{name}:([0-9]+)", told)[0]) for name in ("REG", "STACK"))
    at_a_time, hoped = (65536 // 32 // (-(-taken // 8) * 8 * warps) for taken in (registers, assumed[-1]))
    loop = longest_loop(code)
    barriers = sum("BAR." in instruction for instruction in loop)
    return [f"programs {at_a_time} of {hoped} spilled {spilled} loop {len(loop)} barriers {barriers}"]


def told_by_cuobjdump(option: str, path: str) -> str:
    """Return what the tool tells of a compiled kernel."""
    return subprocess.run([str(CUOBJDUMP), option, path], capture_output=True, text=True, check=True).stdout


def longest_loop(code: str) -> list[str]:
    """Return the instructions of the longest loop: from where a branch goes back to, up to the branch."""
    lines = [(int(at, 16), text) for at, text in re.findall(r"/\*([0-9a-f]{4,})\*/ +([^;]+);", code)]
    loops: list[list[str]] = [[]]
    for at, text in lines:
        back = re.search(r"\bBRA\b.*0x([0-9a-f]+)", text)
        if back and int(back[1], 16) < at:
            loops.append([other for place, other in lines if int(back[1], 16) <= place <= at])
    return max(loops, key=len)


def assume(matrix: Any, tiles: Any, *, registers: int) -> int:
    """Note the registers that a number of programs is computed for."""
    assumed.append(registers)
    return persistent_programs(matrix, tiles, registers=registers)


assumed: list[int] = []
bias_activation.persistent_programs = residual_norm.persistent_programs = assume
driver.set_active(AbsentGpu())
jit.JITFunction.run = compile_only
rows, vector, seed = torch.ones(100, 768, dtype=DTYPE), torch.ones(768, dtype=DTYPE), torch.tensor([3])
for activation in ("gelu", "gelu_tanh", "silu"):
    activate(rows, vector, activation)
    activation_gradients(rows, rows, vector, activation)
# A threshold of dropout beyond 2³¹ is a number of 64 bits to Triton, so that it compiles another kernel.
for some_seed, p in ((seed, 0.1), (seed, 0.9), (None, 0.0)) if ALL else ((seed, 0.1),):
    layer_norm = ResidualNorm(rows, vector, rows, vector, vector, some_seed, p, 1e-5)
    rms_norm = ResidualNorm(rows, vector, rows, vector, None, some_seed, p, 1e-5, multiplies=True)
    for call in (layer_norm, rms_norm) if p < 0.5 else (layer_norm,):
        normalise(call)
        norm_gradients(rows, call)
for size in ((3, 8192), (100, 768), (2000, 1), (5, 127)) if ALL else ((3, 8192),):
    other, column = torch.ones(size, dtype=DTYPE), torch.ones(size[1], dtype=DTYPE)
    plain = ResidualNorm(other, None, other, column, column, None, 0.0, 1e-5)
    normalise(plain)
    norm_gradients(other, plain)
if ALL:
    every_second = torch.ones(100, 1536, dtype=DTYPE)[:, ::2]
    normalise(ResidualNorm(every_second, None, every_second.flip(0), vector, vector, None, 0.0, 1e-5))
