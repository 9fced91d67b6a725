"""Save programs to files that C++ can run: TorchScript archives, frozen or not, and AOTInductor packages.

A package holds compiled kernels and weights in one file. Private: its compiler lies in `torch._inductor`.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_lib.capture.captured import Captured
from course_lib.capture.torchscript import from_script
from course_lib.errors import CaptureError
from course_lib.silence import kept_warnings


def freeze(captured: Captured, *, for_inference: bool = False) -> Captured:
    """Return a traced or scripted module with its weights as constants of one inlined graph.

    Dropout and BatchNorm behave as in evaluation mode, attributes are removed, and constant expressions are computed
    once. With `for_inference`, BatchNorm is folded into convolutions and operators are replaced by faster ones. Raises
    `CaptureError` if the program is not a module, or is in training mode.
    """
    script = _script(captured, "freeze")
    if not isinstance(script, nn.Module):
        raise CaptureError("freeze got a function; only a module has weights to freeze.")
    if not hasattr(script, "training"):  # freezing removes attributes
        raise CaptureError("freeze got a program that is frozen already; give it the one that `capture` returned.")
    if script.training:
        raise CaptureError("freeze got a module in training mode; call .eval() before you capture it.")
    with _warnings() as said:
        frozen = torch.jit.freeze(script)
        if for_inference:
            frozen = torch.jit.optimize_for_inference(frozen)
    by = "torch.jit.optimize_for_inference" if for_inference else "torch.jit.freeze"
    return replace(from_script(captured.mode, by, frozen), warnings=tuple(said))


def save(captured: Captured, path: Path | str) -> Path:
    """Write a traced or scripted program to a file, and return its path; `cpp` runs it, and `load` reads it back."""
    script = _script(captured, "save")
    with _warnings():
        torch.jit.save(script, str(path))
    return Path(path)


def load(path: Path | str) -> Captured:
    """Read a program that `save` wrote; the original Python code is not needed.

    Read only files that you made yourself. Raises `CaptureError` if the file is missing or is no such archive.
    """
    if not Path(path).is_file():
        raise CaptureError(f"load got {str(path)!r}; there is no such file.")
    with _warnings() as said:
        try:
            script = torch.jit.load(str(path))
        except RuntimeError as error:
            raise CaptureError(f"load got {str(path)!r}, which is no TorchScript archive: {error}") from error
    return replace(from_script("script", "torch.jit.load", script), warnings=tuple(said))


def copy_of(captured: Captured) -> Any:
    """Return a copy of the TorchScript program with a new executor, which has profiled nothing yet."""
    buffer = io.BytesIO()
    with _warnings():
        torch.jit.save(_script(captured, "copy_of"), buffer)
        buffer.seek(0)
        return torch.jit.load(buffer)


def _script(captured: Captured, asked_by: str) -> Any:
    if not isinstance(captured, Captured):
        raise CaptureError(
            f'{asked_by} got a {type(captured).__name__}; it expects what capture(model, inputs, mode="trace") returns.'
        )
    if captured.script is None:
        raise CaptureError(
            f"{asked_by} got a program captured with mode={captured.mode!r}; "
            'it expects mode="trace" or mode="script", which give TorchScript.'
        )
    return captured.script


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect warnings instead of printing them."""
    said: list[str] = []
    with kept_warnings() as caught:
        yield said
    said += [f"{warning.category.__name__}: {warning.message}" for warning in caught]


def package(captured: Captured, path: Path | str) -> Path:
    """Compile a program captured with mode "export", write it to a file whose name ends in .pt2, and return its path.

    Compiling takes ten seconds and more. `torch._inductor.aoti_load_package` runs the file in Python, `cpp` in C++.
    Raises `CaptureError` for another mode, a wrong name, or if Inductor fails.
    """
    if captured.exported is None:
        raise CaptureError(f'package got a program captured with mode={captured.mode!r}; it expects mode="export".')
    if Path(path).suffix != ".pt2":
        raise CaptureError(f"package got the name {str(path)!r}; it expects one that ends in .pt2.")
    from torch._inductor import aoti_compile_and_package, config

    # otherwise Inductor precompiles headers for later packages
    without_headers = config.patch({"aot_inductor.precompile_headers": False})
    try:
        with torch.no_grad(), without_headers:
            return Path(aoti_compile_and_package(captured.exported, package_path=str(path)))
    except Exception as error:  # lowering and the C++ compiler can fail in many ways
        raise CaptureError(f"Inductor could not compile the program ({type(error).__name__}): {error}") from error
