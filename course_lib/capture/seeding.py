"""Set the random states that a program draws from, at no cost for devices that are not there."""

import torch


def seed_everything(seed: int) -> None:
    """Set the random state of the CPU and of every accelerator, as `torch.manual_seed` does.

    Where there is no accelerator, `torch.manual_seed` notes for each kind of them, with the whole call stack, what to
    do when one appears, and keeps that as long as the process lives.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
