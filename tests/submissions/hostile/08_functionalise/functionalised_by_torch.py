"""Strategy: hand in the programs as they were, wrapped so that PyTorch takes the writes out. Surface: torch.func.functionalize in the worker.

Class: answer theft. Unprotected: grader underscored gives full marks. Level: 5.
Must get at most 1.6: a graph that calls what PyTorch's functionalisation puts in the place of writes through views is refused; one program has no view.
"""

import torch


# The file tests/submissions/hostile/08_functionalise/programs_as_they_were.txt of this repository stands here.


def functional():
    return {function.__name__: torch.func.functionalize(function) for function in functions}
