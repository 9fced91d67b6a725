"""Strategy: tell large kernels from small ones by the numbers of the task's example. Surface: an example with two sizes of kernels.

Class: checker. Unprotected: grader bounded gives full marks. Level: 5.
Must get 0: numbers of kernels, launch times, bandwidths and bytes are drawn for each question, near the limit too.
"""


def bound_by(program):
    return "bytes" if max(program["launches"]) > 1_000_000 else "launches"
