"""Compile an exported program into an AOTInductor package: kernels and weights in one file, to run without Python.

Private: the compiler's entry lies in `torch._inductor`.
"""

from pathlib import Path

import torch

from course_lib.capture.captured import Captured
from course_lib.errors import CaptureError


def package(captured: Captured, path: Path | str) -> Path:
    """Compile a program captured with mode "export", write it to a file whose name ends in .pt2, and return its path.

    Compiling takes ten seconds and more. `torch._inductor.aoti_load_package` runs the file in Python, `cpp` without.
    Raises `CaptureError` for another mode, a wrong name, or if Inductor fails.
    """
    if captured.exported is None:
        raise CaptureError(f'package got a program captured with mode={captured.mode!r}; it expects mode="export".')
    if Path(path).suffix != ".pt2":
        raise CaptureError(f"package got the name {str(path)!r}; it expects one that ends in .pt2.")
    from torch._inductor import aoti_compile_and_package, config

    # or headers are compiled in advance, for packages to come
    without_headers = config.patch({"aot_inductor.precompile_headers": False})
    try:
        with torch.no_grad(), without_headers:
            return Path(aoti_compile_and_package(captured.exported, package_path=str(path)))
    except Exception as error:  # lowering and the C++ compiler can fail in many ways
        raise CaptureError(f"Inductor could not compile the program ({type(error).__name__}): {error}") from error
