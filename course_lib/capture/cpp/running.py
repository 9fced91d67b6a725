"""Build the C++ programs of this folder against the installed torch, and call them."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch.jit import _pickle

from course_lib.errors import CaptureError

SOURCES = Path(__file__).parent
TORCH = Path(torch.__file__).parent
RUN_TIMEOUT_S = 120
# How C++ writes a list of equal things; each of these functions gives back the list that it is given.
LISTS = [getattr(_pickle, f"build_{kind}list") for kind in ("tensor", "int", "double", "bool")]


@dataclass(frozen=True)
class Runner:
    """A program that loads one kind of file and runs what is in it."""

    executable: Path

    def run(self, program: Path | str, inputs: Sequence[torch.Tensor]) -> Any:
        """Run a saved program on tensors in a process without Python, and return what it gives.

        An archive gives what the program gives; a package gives a list of tensors. Raises `CaptureError` with what the
        process said, if it fails.
        """
        with tempfile.TemporaryDirectory() as folder:
            given, found = Path(folder, "inputs.pt"), Path(folder, "output.pt")
            torch.save(tuple(tensor.detach().cpu() for tensor in inputs), given)
            answer = subprocess.run(
                [self.executable, program, given, found],
                capture_output=True,
                text=True,
                check=False,
                timeout=RUN_TIMEOUT_S,
            )
            if answer.returncode != 0:
                raise CaptureError(f"{self.executable.name} could not run {program}: {answer.stderr.strip()[-400:]}")
            with torch.serialization.safe_globals(LISTS):
                return torch.load(found, weights_only=True)


def build_runner(kind: Literal["script", "package"], folder: Path | str) -> Runner:
    """Compile `run_script` (for `archives.save`) or `run_package` (for `packages.package`) into a folder.

    It takes about ten seconds, and nothing if the folder holds one that is newer than its source. The runner uses the
    libraries of the torch that is installed, so make a new one for another torch. Raises `CaptureError` if there is no
    g++, or it fails.
    """
    if kind not in ("script", "package"):
        raise CaptureError(f'build_runner got {kind!r}; it knows "script" and "package".')
    source = SOURCES / f"run_{kind}.cpp"
    executable = Path(folder) / f"run_{kind}-torch{torch.__version__}"
    if executable.exists() and executable.stat().st_mtime >= source.stat().st_mtime:
        return Runner(executable)
    compiler = shutil.which("g++")
    if compiler is None:
        raise CaptureError("build_runner found no g++ on this machine; install it (Debian: apt-get install g++).")
    unfinished = executable.with_name(f"{executable.name}.{os.getpid()}")  # nobody runs half a program
    answer = subprocess.run(
        [compiler, *_options(), source, "-o", unfinished, *_libraries()], capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        raise CaptureError(f"g++ could not compile {source.name}: {answer.stderr.strip()[:600]}")
    unfinished.replace(executable)
    return Runner(executable)


def _options() -> list[str]:
    include = TORCH / "include"
    new_strings = int(torch.compiled_with_cxx11_abi())  # g++ and torch must agree on what a std::string is
    paths = [f"-I{include}", f"-I{include / 'torch' / 'csrc' / 'api' / 'include'}"]
    return ["-std=c++20", "-O0", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={new_strings}", *paths]


def _libraries() -> list[str]:
    folder = TORCH / "lib"
    return [f"-L{folder}", f"-Wl,-rpath,{folder}", "-ltorch", "-ltorch_cpu", "-lc10"]
