"""Let autograd count this machine's devices before a fake tensor mode pretends that there is one.

A CUDA build of torch on a machine without a GPU: the first `FakeTensorMode` puts a device in the place of the missing
one. If autograd counts devices only after that, it starts a thread for it, and a process that is forked then raises
"Unable to handle autograd's threading in combination with fork-based multiprocessing". Autograd counts once, in the
first backward of a process. Seen with torch 2.13.0+cu130.
"""

import torch


def count_devices_early() -> None:
    """Run a backward of one number, which counts the devices and starts no thread on a machine without a GPU."""
    if not torch.cuda.is_available():
        torch.ones((), requires_grad=True).backward()
