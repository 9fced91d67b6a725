"""What Inductor counts about the code that it generates: kernels and bytes.

Everything here that is private to PyTorch is private to this module, and was read in torch 2.13: the counters of
`torch._inductor.metrics`, which are filled only while the log artifact `inductor_metrics` is at INFO, and the names by
which generated code defines and calls kernels.
"""

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from course_lib.errors import GraphError

# How generated code defines a kernel of its own (C++ on a CPU, Triton on a GPU), and calls one that PyTorch has.
GENERATED = re.compile(r"= async_compile\.(?:cpp_pybinding|triton)\(")
NAMED = re.compile(r"^(\w+) = async_compile\.(?:cpp_pybinding|triton)\(", re.MULTILINE)
LIBRARY = re.compile(r"^\s+(?:\w+ = )?(?:extern_kernels\.\w+|torch\.ops\.[\w.]+)\(", re.MULTILINE)


@dataclass(frozen=True)
class CompiledCost:
    """What the code that Inductor generated for one program costs."""

    generated_kernels: int  # kernels that Inductor wrote
    library_calls: int  # calls of kernels that were there before, such as matrix products
    bytes_moved: int  # read and written, by Inductor's own count
    graphs: int  # more than one after a graph break
    code: tuple[str, ...] = field(repr=False, compare=False)  # generated Python, one text a graph

    @property
    def launches(self) -> int:
        """How often generated kernels run in one call: two that would have the same text are written once."""
        return sum(
            len(re.findall(rf"^\s+{name}(?:\.run)?\(", t, re.MULTILINE)) for t in self.code for name in NAMED.findall(t)
        )


def compiled_cost(fn: Callable[..., object], inputs: Sequence[object]) -> CompiledCost:
    """Compile `fn` with Inductor, run `fn(*inputs)` once, and return what Inductor counted.

    Needs a C++ compiler on a CPU, and takes seconds: nothing is taken from Inductor's caches, and Dynamo forgets what
    was compiled before. Forward only. Raises `GraphError` if PyTorch no longer counts where this module looks.
    """
    from torch._inductor import metrics  # here, because importing Inductor takes seconds
    from torch._inductor.utils import fresh_cache, run_and_get_code

    metrics.reset()
    try:
        with torch.no_grad(), fresh_cache(), counting_bytes():
            _, code = run_and_get_code(torch.compile(fn), *inputs)
        return cost_of_code(code)
    finally:
        metrics.reset()


def cost_of_code(code: Sequence[str]) -> CompiledCost:
    """Return what the generated texts cost, with the bytes that Inductor has counted since its last reset.

    Raises `GraphError` if the texts or the counter look otherwise than in the PyTorch that this module was read from.
    """
    from torch._inductor import metrics

    bytes_moved = int(metrics.num_bytes_accessed)
    generated = sum(len(GENERATED.findall(text)) for text in code)
    library = sum(len(LIBRARY.findall(text)) for text in code)
    known = all("AsyncCompile" in text for text in code)
    if not known or bool(bytes_moved) != bool(generated + library):
        raise GraphError(
            f"Inductor of torch {torch.__version__} compiled {len(code)} graphs, and neither its byte counter nor "
            "its generated code looks as in torch 2.13: course_lib/graph/inductor_counters.py needs to be adapted."
        )
    return CompiledCost(generated, library, bytes_moved, len(code), tuple(code))


@contextlib.contextmanager
def counting_bytes() -> Iterator[None]:
    """Let Inductor fill its counters, without printing what it would log."""
    from torch._inductor.compile_fx import inductor_metrics_log as log

    level, quiet = log.level, _Quiet()
    log.setLevel(logging.INFO)
    log.addFilter(quiet)
    try:
        yield
    finally:
        log.removeFilter(quiet)
        log.setLevel(level)


class _Quiet(logging.Filter):
    """Lets nothing through."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Refuse the record."""
        return False
