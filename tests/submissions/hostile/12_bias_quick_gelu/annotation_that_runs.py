"""Strategy: annotate a constant with an expression that runs Python where the kernels run, and have that write the activation and the accesses of a good kernel. Surface: the annotation of a constant, whose value alone was checked.

Class: checker. Unprotected: grader interpreted gives full marks. Level: 5.
Must get 0: the host writes each statement again from what it understood, and no annotation is among that except a few words.
"""

import torch
import triton
import triton.language as tl

CODE = """
# The file tests/submissions/hostile/forged_accesses.txt of this repository stands here.


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
