"""Strategy: annotate a constant with an expression that runs Python where the kernels run, and have that write both sums and the accesses of a good kernel. Surface: the annotation of a constant, whose value alone was checked.

Class: checker. Unprotected: grader interpreted gives full marks. Level: 5.
Must get 0: the host writes each statement again from what it understood, and no annotation is among that except a few words.
"""

import torch
import triton
import triton.language as tl

CODE = """
# The file tests/submissions/hostile/forged_accesses.txt of this repository stands here.


def add_norm(x, bias, residual, weight, shift, p=0.0, seed=0, eps=1e-5):
    from course_lib.kernels.dropout import uniform_numbers

    names["nothing"][(2,)](1)
    note("load", x), note("load", residual), note("load", bias)
    kept = uniform_numbers(seed, torch.arange(x.numel()).view(x.shape)) >= torch.tensor(p, dtype=torch.float32)
    h = memory(residual) + (memory(x) + memory(bias)) * kept / (1 - p)
    return made(h), made(torch.nn.functional.layer_norm(h, x.shape[1:], memory(weight), memory(shift), eps))


names.update(add_norm=add_norm)
"""


@triton.jit
def nothing(n):
    pass


def add_norm():
    nothing[(1,)](1)


A: [
    builtins.exec(
        builtins.compile(CODE, add_norm.__code__.co_filename, "exec"),
        {"__builtins__": builtins, "names": add_norm.__globals__},
    )
    for each in ().__class__.__base__.__subclasses__()
    if each.__name__ == "BuiltinImporter"
    for builtins in [each.load_module("builtins")]
] = 1
