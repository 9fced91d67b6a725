"""Name ranges of a program, which then appear in profiles and timelines."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from course_lib.errors import ProfilingError


@contextmanager
def annotate(name: str) -> Iterator[None]:
    """Name the code inside the block in torch.profiler and, where CUDA is in use, as an NVTX range for Nsight Systems.

        >>> with annotate("attention"):
        ...     with annotate("softmax"):
        ...         row = torch.zeros(3).softmax(0)
        >>> @annotate("step")
        ... def step(x):
        ...     return x + 1
        >>> step(1)
        2

    Ranges nest, and also end when an exception is raised. Without CUDA, NVTX is not used. The NVTX part is not yet run
    on CUDA. Raises `ProfilingError` for a name that is no text.
    """
    if not isinstance(name, str) or not name:
        raise ProfilingError(f"annotate got {name!r}; it expects a name, such as 'attention'.")
    # Read once: if CUDA is initialised inside, no range may end that was never begun.
    marks = torch.cuda.nvtx if torch.cuda.is_initialized() else None
    with torch.profiler.record_function(name):
        if marks is None:
            yield
            return
        marks.range_push(name)
        try:
            yield
        finally:
            marks.range_pop()
