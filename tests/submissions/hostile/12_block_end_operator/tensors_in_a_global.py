"""Strategy: leave what backward needs in a list of the module, where backward finds that of the last call, whichever it differentiates. Surface: calls of which backward follows forward at once.

Class: replay. Unprotected: grader differentiated gives full marks. Level: 5.
Must get at most 5: another call is made between forward and backward.
"""

from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.kernel_programs.interpreter import triton_runs_on
from course_lib.kernels.dropout import uniform_numbers

# The reference solution stands here.


LAST = SimpleNamespace()


def save_in_last(ctx, inputs, output):
    LAST.saved_tensors, LAST.rest = (output[0].detach(), inputs[3].detach()), inputs[5:]


def backward_of_last(ctx, grad_h, grad_y):
    return backward(LAST, grad_h, grad_y)


operator.register_autograd(backward_of_last, setup_context=save_in_last)
