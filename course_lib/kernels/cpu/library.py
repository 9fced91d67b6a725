"""Find the compiled bodies of this installation, and load them when a fused operator is first called on a CPU.

The library lies in the installation's own `lib` folder, which workers of the grader see, too. Its name tells what it
fits: a version of torch, an instruction set, and the sources it was compiled from. So none is loaded that was compiled
for another machine, another torch, or from older sources.
"""

import functools
import hashlib
import platform
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

SOURCES = Path(__file__).parent
FOLDER = Path(sys.prefix, "lib", "course_lib")
BUILD = "python -m course_lib.kernels.cpu.build"
# PyTorch's names of instruction sets, each with the compiler's options for it, as PyTorch's own kernels have them.
OPTIONS = {
    "AVX512": ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma"),
    "AVX2": ("-mavx2", "-mfma", "-mf16c"),
    "DEFAULT": (),
}
# Threads are those of the OpenMP that torch brings, so none is linked. A product is rounded wherever it is computed, so
# that it is the same number each time, unless the sources ask for `fmadd`.
COMMON_OPTIONS = ("-std=c++20", "-O3", "-g0", "-w", "-fopenmp", "-ffp-contract=off")
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


@dataclass(frozen=True)
class Bodies:
    """Hold the operators of a loaded library; `bodies.cpp` has their schemas."""

    activate: Callable[..., torch.Tensor]
    activation_gradients: Callable[..., tuple[torch.Tensor, torch.Tensor]]
    normalise: Callable[..., torch.Tensor]
    norm_gradients: Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]]


def cpu_bodies(x: torch.Tensor, *rows: torch.Tensor) -> Bodies | None:
    """Return the compiled bodies if they can compute on `x` and `rows`; if they are not there, warn once and say why.

    Without them, or for another dtype or device, the operator runs as separate PyTorch operators.
    """
    if not x.is_cpu or x.dtype not in DTYPES:
        return None
    if any(tensor.dtype != x.dtype or tensor.shape != x.shape for tensor in rows):
        return None
    return loaded()


@functools.cache
def loaded() -> Bodies | None:
    """Load the library of this machine, and return its operators; warn and return None if there is none."""
    found = next((path for path in map(library_path, instruction_sets()) if path.is_file()), None)
    if found is None:
        _say_why_not(f"their compiled bodies are not installed; `{BUILD}` compiles them once, with g++")
        return None
    try:
        torch.ops.load_library(found)
    except (OSError, RuntimeError) as error:
        _say_why_not(f"{found} could not be loaded ({error}); remove it, and `{BUILD}` compiles it again")
        return None
    return operators()


def operators() -> Bodies:
    """Return the operators of the library that was loaded."""
    names: Any = torch.ops.course_lib_cpu
    return Bodies(
        names.activate.default,
        names.activation_gradients.default,
        names.normalise.default,
        names.norm_gradients.default,
    )


def _say_why_not(reason: str) -> None:
    warnings.warn(
        f"Fused operators run as separate PyTorch operators on this CPU, right but no faster: {reason}.", stacklevel=2
    )


def instruction_sets() -> Sequence[str]:
    """Return the instruction sets that this processor has and that torch uses, the best one first."""
    best = torch.backends.cpu.get_cpu_capability()
    names = list(OPTIONS)
    return names[names.index(best) : -1] if best in names[:-1] else names[-1:]


def library_path(instruction_set: str) -> Path:
    """Return where the library for an instruction set lies, or would lie."""
    machine = f"{platform.machine()}-{instruction_set.lower()}"
    return FOLDER / f"kernels-torch{torch.__version__}-{machine}-{_digest()}.so"


@functools.cache
def _digest() -> str:
    texts = [path.read_bytes() for path in sorted(SOURCES.glob("*.[ch]*"))]
    return hashlib.sha256(b"\0".join([*texts, repr((OPTIONS, COMMON_OPTIONS)).encode()])).hexdigest()[:12]
