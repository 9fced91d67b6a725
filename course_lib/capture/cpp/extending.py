"""Build passes of ours over TorchScript's graphs, written in C++, and switch them on from Python."""

import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from course_lib.errors import CaptureError

SOURCE = Path(__file__).parent / "passes.cpp"


@dataclass(frozen=True)
class Passes:
    """The passes of `passes.cpp`, loaded into this process."""

    module: Any

    @contextmanager
    def enabled(self, name: Literal["rewrite", "compile"]) -> Iterator[None]:
        """Let one pass run on every graph that the executor optimises, until the block is left."""
        self.module.enable(name, True)
        try:
            yield
        finally:
            self.module.enable(name, False)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many plans the groups of "compile" have made, and how many calls went to PyTorch's operators instead."""
        return dict(self.module.counts())


def build_passes(folder: Path | str) -> Passes:
    """Compile `passes.cpp` into a folder and load it.

    It takes about half a minute, and a moment if the folder holds it already. Raises `CaptureError` where there is no
    g++ or no ninja, or if they fail.
    """
    missing = [tool for tool in ("g++", "ninja") if shutil.which(tool) is None]
    if missing:
        raise CaptureError(f"build_passes found no {' and no '.join(missing)} on this machine.")
    from torch.utils import cpp_extension  # takes a while, and is needed here alone

    target = Path(folder) / f"passes-torch{torch.__version__}"
    target.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MAX_JOBS", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = cpp_extension.load(
                "course_script_passes",
                [str(SOURCE)],
                build_directory=str(target),
                extra_cflags=["-std=c++20", "-O1", "-w"],
            )
        except (OSError, RuntimeError, ImportError) as error:
            raise CaptureError(f"passes.cpp could not be compiled: {str(error)[-600:]}") from error
    return Passes(module)
