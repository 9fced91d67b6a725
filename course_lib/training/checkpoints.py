"""Checkpoints that are whole or absent, whenever the process ends."""

import os
import pickle
from pathlib import Path
from typing import Any

import torch

from course_lib.errors import TrainingError

CHECKPOINT_NAME = "checkpoint.pt"


def write_checkpoint(folder: Path, state: dict[str, Any]) -> Path:
    """Write a state to the folder's checkpoint in one step, and return its path.

    The state goes to a file beside it, which takes the checkpoint's name only when the disk has all of it: who kills
    the process finds the old checkpoint or the new one, never half of one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, partial = folder / CHECKPOINT_NAME, folder / f"{CHECKPOINT_NAME}.partial"
    with partial.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    _sync_folder(folder)
    return path


def read_checkpoint(folder: Path) -> dict[str, Any] | None:
    """Return the state in the folder's checkpoint, on the CPU; None if the folder has none.

    Only tensors and plain data are read, never code. Raises `TrainingError` if the file is no whole checkpoint.
    """
    path = folder / CHECKPOINT_NAME
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise TrainingError(
            f"{path} is no checkpoint that can be read; remove it to begin anew, or name another folder."
        ) from error
    if not isinstance(state, dict):
        raise TrainingError(f"{path} holds a {type(state).__name__}; it expects a checkpoint that `train` wrote.")
    return state


def _sync_folder(folder: Path) -> None:
    """Have the disk keep the new name too; without it the name may be lost with the power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
