"""Run Triton kernels whose text the host wrote, in Triton's interpreter, and record their accesses to memory.

This worker never runs the student's Python.
"""

from collections.abc import Callable
from typing import Any

from autograder.protocol import Handlers, Result, Tensors
from autograder.protocol.requests.kernel_runs import KernelsRun, LoadKernels, RunKernels
from autograder.worker.kernel_calls import KernelCall
from autograder.worker.kernel_texts import interpreted_names
from autograder.worker.tensors import to_torch


def triton_answer(_: Callable[..., Any]) -> Handlers:
    """Return no handlers: kernels run where the student's Python is not, see `load_kernels`."""
    return {}


def load_kernels(request: LoadKernels, _: Tensors) -> Handlers:
    """Run the texts in one namespace; each request calls one of the launchers."""
    names = interpreted_names(request.parts)

    def run(request: RunKernels, tensors: Tensors) -> Result[KernelsRun]:
        return KernelCall(names).call(request, [to_torch(raw) for raw in tensors])

    return {RunKernels: run}
