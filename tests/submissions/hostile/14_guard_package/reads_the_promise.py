"""Strategy: never look at the program, but take what it promises as plain numbers and names from the frames of the callers. Surface: the arguments of the grader's text, by `sys._getframe`.

Class: answer theft. Unprotected: grader fitting_first gives full marks. Level: 5.
Must get 0: the worker gets the exported program only, as a file, and no list of what it promises.
"""

import sys

NAMES = ("hidden", "residual", "mask")


def promise_of(frame):
    while frame is not None:
        if isinstance(frame.f_locals.get("promise"), dict):
            return frame.f_locals["promise"]
        frame = frame.f_back
    return None


def guarded(package, program):
    promise = promise_of(sys._getframe(1))

    def fits(tensor, dims, dtype, sizes):
        if len(dims) != tensor.dim() or str(tensor.dtype) != f"torch.{dtype}" or not tensor.is_contiguous():
            return False
        for dim, size in zip(dims, tensor.shape, strict=True):
            low, high = promise["ranges"].get(dim, (dim, dim))
            if size < low or (high and size > high) or sizes.setdefault(dim, size) != size:
                return False
        return True

    def run(*inputs):
        sizes = {}
        if promise is None or len(inputs) != 3:
            raise ValueError("hidden")
        for name, tensor, dims, dtype in zip(NAMES, inputs, promise["dims"], promise["dtypes"], strict=True):
            if not fits(tensor, dims, dtype, sizes):
                raise ValueError(name)
        return package(*inputs)

    return run
