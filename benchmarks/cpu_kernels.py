"""Time the fused operators on this CPU beside eager PyTorch and `torch.compile`, in pairs, by size, dtype and threads.

    python -m benchmarks.record cpu_kernels [--quick]

Each line compares our operator with the separate operators and with their compiled form, each in pairs of calls in
random order, so that a busy machine slows both. A ratio above 1 means that ours is faster; the interval holds its true
median with 95 % confidence. "of copy" is the operator's speed as a share of the speed at which this machine copies a
tensor of that size into new memory, again in pairs: each speed is the least traffic over the time. One thread takes all
sizes, two take the middle one. Most of the first run is compilation; what is compiled is kept for the next run. Exit
status 1 if a target is surely missed.
"""

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
import torch._functorch.config
import torch._inductor.config

from benchmarks.kernel_cases import Operator, Program, operators
from course_lib.kernels.cpu import library
from course_lib.timing import compare, time_callable
from course_lib.timing.paired_runs import Comparison

SIZES = {(128, 768): 0.2, (4096, 768): 0.5, (16384, 1024): 0.9}  # and how many seconds a comparison takes
OF_THREADS = {1: tuple(SIZES), 2: ((4096, 768),)}  # what is timed with each number of threads
DTYPES = (torch.float32, torch.bfloat16)
LARGE_ROWS = 4096  # from here on the targets hold
LEAST_OF_COMPILED = 0.95
LEAST_OF_EAGER = 1.5  # forward, where eager moves 4 tensors and ours 2; backward it moves 4 and ours 3
POINTWISE = ("bias_gelu", "bias_gelu_tanh", "bias_silu")
HEAD = f"{'operator':<33}{'size':>13} {'dtype':<9}{'pass':<9}{'ours':>10}{'of copy':>9}"
HEAD += f"{'÷ torch.compile':>24}{'÷ eager':>24}"


@dataclass(frozen=True)
class Line:
    """Hold one operator at one size, compared with both others."""

    operator: str
    rows: int
    direction: str
    text: str
    compiled: Comparison
    eager: Comparison

    def missed(self) -> Iterator[str]:
        """Yield the targets that are missed by the whole interval; one that is too wide to tell misses none."""
        if self.rows < LARGE_ROWS:
            return
        if self.compiled.interval[1] < LEAST_OF_COMPILED:
            yield f"{self.text}: below {LEAST_OF_COMPILED} of torch.compile"
        pointwise = self.operator in POINTWISE and self.direction == "forward"
        if pointwise and self.eager.interval[1] < LEAST_OF_EAGER:
            yield f"{self.text}: below {LEAST_OF_EAGER} of eager"


def lines(size: tuple[int, int], dtype: torch.dtype, budget_s: float) -> Iterator[Line]:
    """Yield the lines of all operators at one size, forward without and backward with gradients."""
    compiler: Callable[[Program], Program] = lambda program: torch.compile(program, dynamic=False)  # noqa: E731  # as short as its use
    for operator in operators(compiler):
        torch._dynamo.reset()
        tensors = operator.tensors(*size, dtype, "cpu")
        programs = (operator.kernel, compiler(operator.eager), operator.eager)
        copied = torch.randn(size).to(dtype)
        for direction, elements in (("forward", operator.forward_elements), ("backward", operator.backward_elements)):
            calls = [_call(program, tensors, direction) for program in programs]
            found = [compare(calls[0], other, budget_s=budget_s, warmup_s=budget_s / 8) for other in calls[1:]]
            found.append(compare(calls[0], copied.clone, budget_s=budget_s / 4, warmup_s=budget_s / 8))
            yield _line(operator, size, dtype, direction, elements, found)


def _call(program: Program, tensors: list[torch.Tensor], direction: str) -> Callable[[], object]:
    if direction == "forward":
        given = [tensor.detach() for tensor in tensors]
        return lambda: program(*given)
    output = program(*tensors)
    grad = torch.randn_like(output)
    return lambda: torch.autograd.grad(output, tensors, grad, retain_graph=True)


def _line(
    operator: Operator,
    size: tuple[int, int],
    dtype: torch.dtype,
    direction: str,
    elements: int,
    found: list[Comparison],
) -> Line:
    ours_us = found[0].candidate.median_us
    of_copy = found[2].ratio * elements / 2  # a copy reads and writes each element once
    name = f"{operator.name:<33}{f'{size[0]} × {size[1]}':>13} {str(dtype).removeprefix('torch.'):<9}{direction:<9}"
    text = f"{name}{ours_us:>7.0f} µs{of_copy:>9.0%}{_ratio(found[0]):>24}{_ratio(found[1]):>24}"
    return Line(operator.name, size[0], direction, text, found[0], found[1])


def _ratio(found: Comparison) -> str:
    low, high = found.interval
    return f"{found.ratio:.2f} ({low:.2f} to {high:.2f})" if math.isfinite(high - low) else f"{found.ratio:.2f} (few)"


def _copies(sizes: Iterable[tuple[int, int]], dtypes: Iterable[torch.dtype]) -> str:
    """Return how many GB this machine reads and writes a second when it copies into new memory, by size."""
    found = []
    for size, dtype in itertools.product(sizes, dtypes):
        source = torch.randn(size).to(dtype)
        speed = 2 * source.nbytes / time_callable(source.clone, budget_s=0.3).median_us / 1e3
        found.append(f"{source.nbytes / 1e6:.1f} MB at {speed:.1f} GB/s")
    return f"Copies into new memory, read and written: {', '.join(found)}."


def main(arguments: list[str]) -> int:
    """Print a table for each number of threads, and what was missed; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one tiny size, to test the measurement")
    parser.add_argument("--threads", type=int, nargs="+", choices=OF_THREADS, default=[*OF_THREADS])
    parser.add_argument("--longer", type=float, default=1.0, metavar="X", help="how many times as long to measure")
    options = parser.parse_args(arguments)
    if library.loaded() is None:
        return 1
    torch._functorch.config.donated_buffer = False  # the backward pass runs many times on the same saved tensors
    dtypes = (torch.float32,) if options.quick else DTYPES
    missed: list[str] = []
    for threads in [1] if options.quick else options.threads:
        sizes = ((8, 32),) if options.quick else OF_THREADS[threads]
        torch.set_num_threads(threads)
        torch._inductor.config.cpp.threads = threads  # else code that was compiled for another number is used again
        print(f"\nThreads: {threads}. {_copies(sizes, dtypes)}\n{HEAD}", flush=True)
        for size, dtype in itertools.product(sizes, dtypes):
            for line in lines(size, dtype, SIZES.get(size, 0.02) * options.longer):
                print(line.text, flush=True)
                missed += [] if options.quick else line.missed()
    print("\n".join(["", "Surely missed:", *missed] if missed else ["", "No target is surely missed."]))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
