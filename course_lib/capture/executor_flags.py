"""The switches of TorchScript's executor that let it fuse on a CPU.

Private: they are names of `torch._C`, belong to the whole process, and are put back here whatever happens.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import torch

Fuser = Literal["none", "tensor_expressions", "onednn"]


@contextmanager
def fusing_with(fuser: Fuser) -> Iterator[None]:
    """Let the executor fuse with one fuser, or none, until the block is left.

    "tensor_expressions" (NNC) needs LLVM for fast code, which PyTorch's wheels lack: its groups are then run by a slow
    reference interpreter, so they are to be looked at and not to be timed. "onednn" is fast, for frozen modules.
    """
    switches = _switches()
    before = [read() for read, _ in switches]
    wanted = [fuser == "tensor_expressions", fuser == "tensor_expressions", False, fuser == "onednn"]
    try:
        for (_, write), value in zip(switches, wanted, strict=True):
            write(value)
        yield
    finally:
        for (_, write), value in zip(switches, before, strict=True):
            write(value)


def has_llvm() -> bool:
    """Whether this build of PyTorch can compile fusion groups for the CPU; PyTorch's own packages cannot."""
    return bool(torch._C._llvm_enabled())


def _switches() -> list[tuple[Callable[[], bool], Callable[[bool], object]]]:
    """Return how to read and how to write each switch."""
    return [
        (torch._C._jit_can_fuse_on_cpu, torch._C._jit_override_can_fuse_on_cpu),
        (torch._C._jit_texpr_fuser_enabled, torch._C._jit_set_texpr_fuser_enabled),
        (torch._C._jit_get_te_must_use_llvm_cpu, torch._C._jit_set_te_must_use_llvm_cpu),  # type: ignore[attr-defined]
        (torch._C._jit_llga_enabled, torch._C._jit_set_llga_enabled),
    ]
