"""Compile answers as a worker with a GPU does, for a GPU that is not here: `test_compiled_kernels.py` runs this alone.

    python timed_answers.py < answers.json

Each answer is a list of the name of its exercise, the launcher, and the text. Triton is told that an H100 is there,
and each launch ends before the device would be asked for anything. Prints a line a launch: the exercise, the kernel,
the grid, the bytes of its program, and the types of its arguments; and the shapes that the launcher returned.
"""

import json
import sys
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver, jit

from autograder.exercises import find
from autograder.host.kinds.triton import arguments_of
from autograder.protocol.requests.kernel_runs import LoadTimedKernels
from autograder.protocol.requests.loads import Part
from autograder.worker.kinds.compiled_kernels import CompiledLauncher

run = jit.JITFunction.run


class AbsentGpu:
    """What Triton asks a device before it compiles."""

    def get_current_device(self) -> int:
        """Return the number of the device."""
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        """Return the default stream."""
        return 0

    def get_current_target(self) -> GPUTarget:
        """Return what to compile for."""
        return GPUTarget("cuda", 90, 32)


def compile_only(kernel: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:
    """Compile instead of launching, and print what came out."""
    compiled = run(kernel, *arguments, grid=grid, warmup=True, **options)
    kinds = {type(argument).__name__ for argument in arguments}
    print("launch", compiled.metadata.name, grid, len(compiled.asm["cubin"]), *sorted(kinds))
    return compiled


def main() -> None:
    """Call each launcher once on tensors of the size that is timed."""
    driver.set_active(AbsentGpu())
    jit.JITFunction.run = compile_only
    for exercise_id, launcher, text in json.load(sys.stdin):
        of = find(exercise_id).bandwidth
        assert of is not None
        called = CompiledLauncher(LoadTimedKernels((Part("answer", text),), launcher, arguments_of(of)))
        print("exercise", exercise_id)
        try:
            outputs = called(*(torch.empty(spec.shape, dtype=spec.dtype) for spec in of.inputs))
        except Exception as error:
            print("failed", type(error).__name__, str(error).replace("\n", " ")[:300])
            continue
        right = [(tuple(t.shape), t.dtype) for t in outputs] == [(s.shape, s.dtype) for s in of.outputs]
        print("returned", "as expected" if right else [tuple(t.shape) for t in outputs])


main()
