"""Compile each variant of the Triton kernels for a GPU that need not be here: run by `test_triton.py` on its own.

    python compiled_kernels.py 90

The number is a compute capability. Prints a line a variant, with the bytes of its program. That they run is another
matter; but the interpreter accepts what the compiler refuses, such as two branches that return different shapes.
"""

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from course_lib.kernels.triton import bias_activation, residual_norm

TILE = {"ROWS": 1, "COLUMNS": 1024}
WARPS = 4
Variant = tuple[Any, int, int, dict[str, object]]  # a kernel, its pointers, how many of them are of sums, its flags


def variants() -> Iterator[Variant]:
    """Yield each kernel with each choice of flags that an operator makes."""
    for activation in ("gelu", "gelu_tanh", "silu"):
        flags = {"ACTIVATION": activation, **TILE}
        yield bias_activation._forward, 3, 0, flags
        yield bias_activation._backward, 5, 1, flags
    for vector, drops in itertools.product(("none", "bias", "scale"), (False, True)):
        flags = {"VECTOR": vector, "DROPS": drops, "LAYER_NORM": vector != "scale", **TILE}
        yield residual_norm._forward, 7, 0, flags
        yield residual_norm._backward, 9, 1, flags


def compiled_bytes(variant: Variant, capability: int) -> int:
    """Return the bytes of the program that one kernel becomes."""
    kernel, pointers, sums, flags = variant
    names = kernel.arg_names
    strides = [name for name in names if name.endswith("_strides")]
    kinds = ["*bf16"] * (pointers - sums) + ["*fp32"] * sums
    if "DROPS" in flags:
        kinds[5] = "*i64"  # the seed, in both kernels that take one
    signature: dict[str, object] = {"pointers": tuple(kinds), "sizes": ("i32", "i32")}
    signature |= dict.fromkeys(strides, ("i32", "constexpr"))  # columns are neighbours
    signature |= {"numbers": ("fp32", "fp32", "i64")} if "numbers" in names else {}
    signature |= dict.fromkeys(flags, "constexpr")
    constants: dict[object, object] = {(names.index(name), 1): 1 for name in strides}
    constants |= {(names.index(name),): value for name, value in flags.items()}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    program = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": WARPS})
    return len(program.asm["cubin"])


for variant in variants():
    print(variant[0].__name__, variant[3], compiled_bytes(variant, int(sys.argv[1])), "bytes")
