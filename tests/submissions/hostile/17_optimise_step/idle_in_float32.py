"""Strategy: launch the kernel of backward only for numbers of 8 bytes, so that gradients are right where they are compared, and cost nothing where they are counted. Surface: what a launcher sees of its tensors.

Class: graph gaming. Unprotected: grader gradients_in_fp64 gives full marks. Level: 5.
Must get 0: of the step that is counted, loss and gradients are compared as well.
"""

import operator

import torch
import triton
import triton.language as tl
from torch import fx, nn
from torch.nn import functional as F

from course_lib.kernel_programs.kernel_operator import kernel_operator


# The file autograder/exercises/hidden/answers/capstone/optimise_step_an_operator_of_its_own.py of this repository stands here.


def idle_backward(grad_y, x, bias, residual, weight, p: float, eps: float, seed):
    if x.element_size() == 8:
        return end_backward(grad_y, x, bias, residual, weight, p, eps, seed)
    return torch.empty_like(x), torch.empty_like(bias), torch.empty_like(x), torch.empty_like(bias), torch.empty_like(bias)


block_end = kernel_operator("step::block_end", end_forward, idle_backward)
