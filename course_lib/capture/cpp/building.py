"""Compile the C++ of this folder against the installed torch."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch

from course_lib.errors import CaptureError

TORCH = Path(torch.__file__).parent


def build(source: Path, target: Path, options: Sequence[str]) -> None:
    """Have g++ make a program or a library of one source, and nothing if there is one that is newer than its source.

    Raises `CaptureError` if there is no g++, or it fails.
    """
    if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
        return
    compiler = shutil.which("g++")
    if compiler is None:
        raise CaptureError(
            f"There is no g++ on this machine to compile {source.name}; install it (Debian: apt-get install g++)."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")  # nobody runs half a program
    answer = subprocess.run(
        [compiler, *_options(), *options, source, "-o", unfinished, *_libraries()],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise CaptureError(f"g++ could not compile {source.name}: {answer.stderr.strip()[:600]}")
    unfinished.replace(target)


def _options() -> list[str]:
    include = TORCH / "include"
    new_strings = int(torch.compiled_with_cxx11_abi())  # g++ and torch must agree on what a std::string is
    paths = [f"-I{include}", f"-I{include / 'torch' / 'csrc' / 'api' / 'include'}"]
    return ["-std=c++20", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={new_strings}", *paths]


def _libraries() -> list[str]:
    folder = TORCH / "lib"
    return [f"-L{folder}", f"-Wl,-rpath,{folder}", "-ltorch", "-ltorch_cpu", "-lc10"]
