"""Strategy: import what observes functions, make it see nothing, and run PyTorch's own pass. Surface: modules of the worker, which an answer can import and change.

Class: answer theft. Unprotected: grader exemplary gives full marks. Level: 5.
Must get 0: the modules that run are taken from where imports look, so that the answer changes others.
"""

from autograder.worker import rewrites_of_torch

rewrites_of_torch._is_rewrite = lambda *given: False

# The file tests/submissions/hostile/04_shape_propagation/pass_of_pytorch.py of this repository stands here.
