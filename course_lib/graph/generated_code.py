"""Get the code that Inductor generates for a program, without compiling this code.

Inductor works in two steps: it lowers a graph to source text (loops in C++ on a CPU, Triton on a GPU), and then has a
compiler build kernels from the text. The first step decides which loops are fused, and how much this saves. This
module stops there, so it needs no C++ compiler. The text is the same on every machine, since the width of the vectors
(256 bits) and the number of threads (one) are fixed here. The exception is `compiled_cost`, which compiles and runs the
program for this machine.

This module alone uses these private parts of PyTorch, as they are in torch 2.13: the function that receives the
generated text; the queries to the compiler and the processor before it; the counters of `torch._inductor.metrics`,
which are active only while the log artifact `inductor_metrics` is at INFO; and the names by which generated code
defines and calls kernels.
"""

import contextlib
import functools
import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch

from course_lib.errors import GraphError
from course_lib.isolation import modes_kept

# Patterns that find where generated code defines a kernel (C++ on a CPU, Triton on a GPU) or calls one of PyTorch.
GENERATED = re.compile(r"= async_compile\.(?:cpp_pybinding|triton)\(")
NAMED = re.compile(r"^(\w+) = async_compile\.(?:cpp_pybinding|triton)\(", re.MULTILINE)
LIBRARY = re.compile(r"^\s+(?:\w+ = )?(?:extern_kernels\.\w+|torch\.ops\.[\w.]+)\(", re.MULTILINE)


@dataclass(frozen=True)
class CompiledCost:
    """Hold the cost of the code that Inductor generated for one program."""

    generated_kernels: int  # kernels that Inductor wrote
    library_calls: int  # calls of existing kernels, such as matrix products
    bytes_moved: int  # read and written, by Inductor's own count
    graphs: int  # more than one after a graph break
    code: tuple[str, ...] = field(repr=False, compare=False)  # generated Python, one text a graph

    @property
    def launches(self) -> int:
        """Return how many generated kernels run in one call; a kernel may be called several times."""
        return sum(
            len(re.findall(rf"^\s+{name}(?:\.run)?\(", t, re.MULTILINE)) for t in self.code for name in NAMED.findall(t)
        )


def compiled_cost(fn: Callable[..., object], inputs: Sequence[object]) -> CompiledCost:
    """Compile `fn` with Inductor, run `fn(*inputs)` once, and return what Inductor counted.

    Needs a C++ compiler on a CPU, and takes seconds: Inductor's caches are not used, and Dynamo is reset. Forward only.
    Raises `GraphError` if PyTorch no longer has the counters that this module reads.
    """
    from torch._inductor import metrics  # here, since importing Inductor takes seconds
    from torch._inductor.utils import fresh_cache, run_and_get_code

    metrics.reset()
    try:
        with torch.no_grad(), fresh_cache(), counting_bytes():
            _, code = run_and_get_code(torch.compile(fn), *inputs)
        return cost_of_code(code)
    finally:
        metrics.reset()


def cost_of_code(code: Sequence[str]) -> CompiledCost:
    """Return the cost of the generated texts, with the bytes that Inductor has counted since its last reset.

    Raises `GraphError` if the texts or the counter differ from what torch 2.13 gives.
    """
    from torch._inductor import metrics

    bytes_moved = int(metrics.num_bytes_accessed)
    generated = sum(len(GENERATED.findall(text)) for text in code)
    library = sum(len(LIBRARY.findall(text)) for text in code)
    known = all("AsyncCompile" in text for text in code)
    if not known or bool(bytes_moved) != bool(generated + library):
        raise GraphError(
            f"Inductor of torch {torch.__version__} compiled {len(code)} graphs, and neither its byte counter nor "
            "its generated code looks as in torch 2.13: course_lib/graph/generated_code.py needs to be adapted."
        )
    return CompiledCost(generated, library, bytes_moved, len(code), tuple(code))


@contextlib.contextmanager
def counting_bytes() -> Iterator[None]:
    """Make Inductor fill its counters, without printing its log."""
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
    """Drop every record of a log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Refuse the record."""
        return False


# The first line of a text contains the number of the graph, counted over this process.
_NUMBER = re.compile(r"\A(# AOT ID: \[')\d+")
# The path of a Triton kernel on this machine.
_PLACE = re.compile(r"^# kernel path: .*\n", re.MULTILINE)

# The patches of Inductor hold for the whole process, so one thread at a time may apply them.
_ONE_AT_A_TIME = threading.RLock()

# Settings that make the text the same on all machines; settings of the caller override them.
_SETTINGS: Mapping[str, Any] = {
    "force_disable_caches": True,
    "cpp.vec_isa_ok": True,
    "cpp.threads": 1,
    "compile_threads": 1,  # otherwise the first text in Triton starts a pool of compile processes
}


def lowered(
    fn: Callable[..., object], inputs: Sequence[object], *, config: Mapping[str, Any] | None = None
) -> CompiledCost:
    """Generate Inductor's code for `fn(*inputs)` without compiling it, and return the code and its cost.

    `config` holds options of `torch._inductor.config` by their names, such as `{"max_fusion_size": 1}`; with
    `{"cpu_backend": "triton"}` the text is Triton code, as for a GPU, on any device. Only the forward pass is
    lowered. `fn` runs once on PyTorch's own kernels, so its writes to its inputs take effect. Dynamo is reset.
    Raises `GraphError` if Inductor cannot lower the program, or does not have such an option.
    """
    with _ONE_AT_A_TIME:
        return _lowered(fn, inputs, config or {})


def _lowered(fn: Callable[..., object], inputs: Sequence[object], config: Mapping[str, Any]) -> CompiledCost:
    from torch._inductor import metrics  # here, since importing Inductor takes seconds

    texts: list[str] = []
    torch._dynamo.reset()
    metrics.reset()
    try:
        with (
            modes_kept(),
            torch.no_grad(),
            _settings(config),
            _stopping_after_the_text(texts),
            counting_bytes(),
            _quiet(),
        ):
            torch.compile(fn)(*inputs)
        return cost_of_code(texts)
    except GraphError:
        raise
    except Exception as error:
        name = getattr(fn, "__name__", type(fn).__name__)
        raise GraphError(
            f"{name} cannot be lowered with these inputs ({_reason(error)}): run it without Inductor, and if that "
            "works, leave out what was added last."
        ) from error
    finally:
        metrics.reset()
        torch._dynamo.reset()


@contextlib.contextmanager
def _settings(config: Mapping[str, Any]) -> Iterator[None]:
    """Set options of Inductor, and restore them at the end."""
    import torch._inductor.config as inductor

    known = inductor.get_config_copy()
    if unknown := sorted(name for name in config if name not in known):
        raise GraphError(
            f"Inductor of torch {torch.__version__} has no option {unknown[0]!r}; torch._inductor.config has them all."
        )
    with inductor.patch({**_SETTINGS, **config}):
        yield


@contextlib.contextmanager
def _stopping_after_the_text(texts: list[str]) -> Iterator[None]:
    """Collect the text of each graph, run the graph instead of the text, and query neither compiler nor processor."""
    from torch._inductor.dtype_propagation import DtypePropagationOpsHandler
    from torch._inductor.graph import GraphLowering

    class Standing:
        """Replace the module that Inductor would load from the generated text."""

        def __init__(self, graph: GraphLowering) -> None:
            self.call = lambda arguments: graph.orig_gm(*arguments)

    def keep(graph: GraphLowering) -> Standing:
        text, _ = graph.codegen()
        texts.append(_PLACE.sub("", _NUMBER.sub(f"\\g<1>{len(texts)}", text.value, count=1)))
        return Standing(graph)

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(GraphLowering, "compile_to_module", keep))
        stack.enter_context(mock.patch("torch._inductor.cpp_builder.is_gcc", return_value=True))
        stack.enter_context(mock.patch("torch._inductor.cpp_builder.is_msvc_cl", return_value=False))
        stack.enter_context(mock.patch("torch.utils._triton.triton_hash_with_backend", return_value=""))
        stack.enter_context(mock.patch("torch._inductor.cpu_vec_isa.pick_vec_isa", _instructions))
        # Dynamo measures its guards after each capture and flushes the cache of the processor for it; not needed here.
        stack.enter_context(mock.patch("torch._dynamo.guards.profile_guard_manager", return_value=0.0))
        # Without this patch the rules of type promotion would be registered again for each written value.
        types = functools.cache(DtypePropagationOpsHandler)
        stack.enter_context(mock.patch("torch._inductor.codegen.common.DtypePropagationOpsHandler", types))
        yield


def _instructions() -> Any:
    """Return the vector instructions to generate code for: 256 bits, unless the option `cpp.simdlen` is set."""
    from torch._inductor import config, cpu_vec_isa

    width = config.cpp.simdlen
    if width in (None, 256):
        return cpu_vec_isa.VecAVX2()
    return cpu_vec_isa.VecAVX512() if width == 512 else cpu_vec_isa.invalid_vec_isa


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence messages of PyTorch: they concern running the code, or are repeated in the error that is raised."""
    loggers = [logging.getLogger(name) for name in ("torch", "torch._dynamo", "torch._inductor")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _reason(error: BaseException) -> str:
    """Return the first cause of an error in one line."""
    while earlier := error.__cause__ or error.__context__:
        error = earlier
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].rstrip('.')}" if lines else type(error).__name__
