"""Build the C++ program that runs what was saved, and call it."""

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch.jit import _pickle

from course_lib.capture.cpp.building import build
from course_lib.errors import CaptureError

SOURCE = Path(__file__).parent / "run_saved.cpp"
Kind = Literal["script", "package"]
RUN_TIMEOUT_S = 120
# How C++ writes a list of equal things; each of these functions gives back the list that it is given.
LISTS = [getattr(_pickle, f"build_{kind}list") for kind in ("tensor", "int", "double", "bool")]


@dataclass(frozen=True)
class Runner:
    """A program that loads one kind of file and runs what is in it."""

    executable: Path
    kind: Kind

    def run(self, program: Path | str, inputs: Sequence[torch.Tensor]) -> Any:
        """Run a saved program on tensors in a process without Python, and return what it gives.

        An archive gives what the program gives; a package gives a list of tensors. Raises `CaptureError` with what the
        process said, if it fails.
        """
        with tempfile.TemporaryDirectory() as folder:
            given, found = Path(folder, "inputs.pt"), Path(folder, "output.pt")
            torch.save(tuple(tensor.detach().cpu() for tensor in inputs), given)
            answer = subprocess.run(
                [self.executable, self.kind, program, given, found],
                capture_output=True,
                text=True,
                check=False,
                timeout=RUN_TIMEOUT_S,
            )
            if answer.returncode != 0:
                raise CaptureError(f"{self.executable.name} could not run {program}: {answer.stderr.strip()[-400:]}")
            with torch.serialization.safe_globals(LISTS):
                return torch.load(found, weights_only=True)


def build_runner(kind: Kind, folder: Path | str) -> Runner:
    """Compile `run_saved` into a folder: for what `archives.save` wrote, or for what `packages.package` wrote.

    It is one program for both. That keeps a compiler busy for a while, unless the folder holds one that is newer than
    its source. The runner uses the libraries of the torch that is installed, so make a new one for another torch.
    Raises `CaptureError` if there is no g++, or it fails.
    """
    if kind not in get_args(Kind):
        raise CaptureError(f'build_runner got {kind!r}; it knows "script" and "package".')
    executable = Path(folder) / f"run_saved-torch{torch.__version__}"
    build(SOURCE, executable, ["-O0"])
    return Runner(executable, kind)
