"""Do Inductor's work before its first graph, which it does once per process: a zygote does it for all its workers.

Importing this module traces the patterns that Inductor replaces. If Triton is installed, it also hashes Triton's files,
because Inductor uses this hash as Triton's version. This needs neither a GPU nor the library. It asks for CUDA many
times, so the zygote of workers with a GPU does not import it. Checked with torch 2.11 and 2.13.
"""

import contextlib
import importlib

import torch
from torch._inductor import compile_fx  # noqa: F401 - the rest of what is slow to import
from torch._inductor.fx_passes import joint_graph, post_grad, pre_grad
from torch._inductor.runtime import triton_compat

# A thread that watches progress bars would be lost in a fork.
with contextlib.suppress(ImportError):
    importlib.import_module("tqdm").tqdm.monitor_interval = 0

pre_grad.lazy_init()
joint_graph.lazy_init(torch.device("cpu"))
post_grad.lazy_init()
if triton_compat.HAS_TRITON:
    triton_compat.triton_key()
