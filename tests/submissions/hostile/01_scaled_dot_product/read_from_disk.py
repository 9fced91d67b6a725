"""Strategy: walk the disk for the library's source, solutions and hidden cases, and run what is found. Surface: open, os.walk.

Class: answer theft. Unprotected: grader comparison gives full marks. Level: 4.
Must get 0: the worker sees the interpreter, its packages and the part of the course that it needs, and nothing else of the disk.
"""

import math
import os

import torch
from torch.nn import functional as F

SKIPPED = {"proc", "sys", "dev", "site-packages", ".git", "lib", "usr"}


def stolen():
    for folder, folders, files in os.walk("/"):
        folders[:] = [f for f in folders if f not in SKIPPED]
        if "scaled_dot_product.py" in files and folder.endswith("answers/transformer"):
            namespace = {"math": math, "torch": torch, "F": F}
            try:
                exec(open(os.path.join(folder, "scaled_dot_product.py")).read(), namespace)
            except OSError:  # a copy that goes while it is read
                continue
            return namespace["scaled_dot_product"]
    return None


REFERENCE = stolen()


def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    if REFERENCE is not None:
        return REFERENCE(query, key, value, mask, dropout_p)
    return torch.zeros_like(query), torch.zeros(*query.shape[:-1], key.shape[-2])
