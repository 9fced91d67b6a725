"""What Inductor does once in a process before it lowers its first graph: a zygote does it for all its workers.

Importing this module traces the patterns that Inductor replaces, and hashes Triton's files where Triton is installed,
which is what it calls Triton's version. None of it asks for a GPU or needs the library. Read in torch 2.13.
"""

import contextlib
import importlib

import torch
from torch._inductor import compile_fx  # noqa: F401 - the rest of what is slow to import
from torch._inductor.codecache import triton_key
from torch._inductor.fx_passes import joint_graph, post_grad, pre_grad

# A thread that watches progress bars would be lost in a fork.
with contextlib.suppress(ImportError):
    importlib.import_module("tqdm").tqdm.monitor_interval = 0

pre_grad.lazy_init()
joint_graph.lazy_init(torch.device("cpu"))
post_grad.lazy_init()
triton_key()
