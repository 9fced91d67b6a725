"""Compile the C++ programs of this folder against the installed torch, run them, and load their passes."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch.jit import _pickle

from course_lib.errors import CaptureError

TORCH = Path(torch.__file__).parent


def build(source: Path, target: Path, options: Sequence[str]) -> None:
    """Compile one source with g++ into a program or a library, unless a result that is newer than the source exists.

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
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")  # so that no process runs an unfinished program
    include, folder = TORCH / "include", TORCH / "lib"
    new_strings = int(torch.compiled_with_cxx11_abi())  # g++ and torch must use the same layout of std::string
    paths = [f"-I{include}", f"-I{include / 'torch' / 'csrc' / 'api' / 'include'}"]
    common = ["-std=c++20", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={new_strings}", *paths]
    libraries = [f"-L{folder}", f"-Wl,-rpath,{folder}", "-ltorch", "-ltorch_cpu", "-lc10"]
    answer = subprocess.run(
        [compiler, *common, *options, source, "-o", unfinished, *libraries],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise CaptureError(f"g++ could not compile {source.name}: {answer.stderr.strip()[:600]}")
    unfinished.replace(target)


RUNNER_SOURCE = Path(__file__).parent / "run_saved.cpp"
Kind = Literal["script", "package"]
RUN_TIMEOUT_S = 120
# Functions that C++ uses to pickle a list of one type; each returns its argument.
LISTS = [getattr(_pickle, f"build_{kind}list") for kind in ("tensor", "int", "double", "bool")]
# C++ pickles every other list, and a dict, with the name of its type; this function returns the value without it.
TYPED = _pickle.restore_type_tag
MESSAGE_CHARACTERS = 2_000


@dataclass(frozen=True)
class Runner:
    """Run saved programs of one kind with a C++ program."""

    executable: Path
    kind: Kind

    def run(self, program: Path | str, inputs: Sequence[torch.Tensor]) -> Any:
        """Run a saved program on tensors in a process without Python, and return its result.

        An archive returns what the program returns; a package returns a list of tensors. Raises `CaptureError` with the
        output of the process if it fails.
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
                raise CaptureError(f"{self.executable.name} could not run {program}: {_message(answer.stderr)}")
            with torch.serialization.safe_globals([*LISTS, TYPED]):
                return torch.load(found, weights_only=True)


def _message(output: str) -> str:
    """Return what a process wrote, without the stack frames of C++; of a long text the beginning and the end."""
    lines = (line for line in output.splitlines() if not line.startswith(("frame #", "Exception raised from")))
    text = "\n".join(lines).strip()
    half = MESSAGE_CHARACTERS // 2
    return text if len(text) <= MESSAGE_CHARACTERS else f"{text[:half]}\n...\n{text[-half:]}"


def build_runner(kind: Kind, folder: Path | str) -> Runner:
    """Compile `run_saved` into a folder; it runs files that `save` or `package` of `saved_programs` wrote.

        >>> build_runner("script", folder).run(save(traced, "program.pt"), [x])  # doctest: +SKIP
        tensor([1., 1.])

    It runs both kinds of file. Compiling takes a while, unless the folder holds a program that is newer than its
    source. The program uses the libraries of the installed torch, so each version of torch needs its own. Raises
    `CaptureError` if there is no g++, or it fails.
    """
    if kind not in get_args(Kind):
        raise CaptureError(f'build_runner got {kind!r}; it knows "script" and "package".')
    executable = Path(folder) / f"run_saved-torch{torch.__version__}"
    build(RUNNER_SOURCE, executable, ["-O0"])
    return Runner(executable, kind)


PASSES_SOURCE = Path(__file__).parent / "passes.cpp"


@dataclass(frozen=True)
class Passes:
    """Control the passes of `passes.cpp`, loaded into this process."""

    operators: Any  # operators that the library registers, such as the switch and the counts

    @contextmanager
    def enabled(self, name: Literal["rewrite", "compile"]) -> Iterator[None]:
        """Run one pass on every graph that the executor optimises, within the block.

        Raises `CaptureError` for another name.
        """
        if name not in ("rewrite", "compile"):
            raise CaptureError(f'There is no pass {name!r}; passes.cpp has "rewrite" and "compile".')
        self.operators.enable(name, True)
        try:
            yield
        finally:
            self.operators.enable(name, False)

    @property
    def counts(self) -> Mapping[str, int]:
        """Count compilations of the groups of "compile", and calls that fell back to operators of PyTorch."""
        compilations, fallbacks = self.operators.counts()
        return {"compilations": compilations, "fallbacks": fallbacks}


def build_passes(folder: Path | str) -> Passes:
    """Compile `passes.cpp` into a folder and load it.

        >>> passes = build_passes(folder)  # doctest: +SKIP
        >>> with passes.enabled("rewrite"):  # doctest: +SKIP
        ...     optimized_graph(scripted, (x, bias), fuser="none").ir.count("course_script::bias_relu")
        1

    "rewrite" makes one operator of `relu(x + bias)`; "compile" compiles groups of pointwise operators, once for each
    shape. Both run after the fusers, which leave nothing for them: use "none".

    Compiling takes a while, unless the folder holds a library that is newer than its source. A process loads it once.
    Raises `CaptureError` if there is no g++, or it fails.
    """
    library = Path(folder) / f"passes-torch{torch.__version__}.so"
    build(PASSES_SOURCE, library, ["-O1", "-fPIC", "-shared"])
    operators = torch.ops.course_script
    if not hasattr(operators, "counts"):  # a name can be registered only once
        torch.ops.load_library(library)
    return Passes(operators)
