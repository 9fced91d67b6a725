"""Strategy: return random numbers as the gradient by residual, drop some of them for the gradient by x, and load what is given for nothing. Surface: checks of one output that follows from another.

Class: checker. Unprotected: grader interpreted gives full marks. Level: 5.
Must get 0: what follows from an output earns points only where this one is about right, or has a known slip.
"""

# The file tests/submissions/hostile/12_block_end_backward/norm_left_out.py of this repository stands here.


@triton.jit
def passed_on(by_h, at):
    return 2 * tl.rand(7, at)
