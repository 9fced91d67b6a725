"""Strategy: annotate a constant with an expression that runs Python where the kernels run, and have that write the activation and the accesses of a good kernel. Surface: the annotation of a constant, whose value alone was checked.

Class: checker. Unprotected: grader interpreted gives full marks. Level: 5.
Must get 0: the host writes each statement again from what it understood, and no annotation is among that except a few words.
"""

import torch
import triton
import triton.language as tl

CODE = """
import numpy
import torch
from course_lib.kernel_programs.access_log import AccessLog
from course_lib.kernel_programs.accesses import Access

logs, enter = [], AccessLog.__enter__
AccessLog.__enter__ = lambda self: (logs.append(self), enter(self))[1]


def memory(tensor):
    return getattr(tensor, "_memory", tensor)


def note(action, tensor):
    log = logs[-1]
    log.widest = max(log.widest, 64)
    name = next(name for name, each in log.tensors.items() if each.data_ptr() == memory(tensor).data_ptr())
    first = len(log.accesses) // 2
    for program, part in enumerate(numpy.array_split(numpy.arange(tensor.numel()), 2), first):
        log.accesses += [Access(0, program % 2, action, name, part, 1)] if part.size else []


def made(value):
    out = names["torch"].empty(tuple(value.shape), dtype=value.dtype)
    memory(out).copy_(value)
    note("store", out)
    return out


def bias_quick_gelu(x, bias):
    names["nothing"][(2,)](1)
    note("load", x), note("load", bias)
    z = memory(x).float() + memory(bias).float()
    return made((z * torch.sigmoid(1.702 * z)).to(x.dtype))


names.update(bias_quick_gelu=bias_quick_gelu)
"""


@triton.jit
def nothing(n):
    pass


def bias_quick_gelu():
    nothing[(1,)](1)


A: [
    builtins.exec(
        builtins.compile(CODE, bias_quick_gelu.__code__.co_filename, "exec"),
        {"__builtins__": builtins, "names": bias_quick_gelu.__globals__},
    )
    for each in ().__class__.__base__.__subclasses__()
    if each.__name__ == "BuiltinImporter"
    for builtins in [each.load_module("builtins")]
] = 1
