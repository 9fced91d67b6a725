"""The compiled bodies: which library is loaded, how it is built, and what an operator does without it."""

import errno
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from course_lib.errors import KernelError
from course_lib.kernels import bias_silu
from course_lib.kernels.cpu import build, library
from course_lib.kernels.dropout import dropout_factors


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installation without the library; what was loaded before is not asked."""
    monkeypatch.setattr(library, "FOLDER", tmp_path / "lib")
    library.loaded.cache_clear()
    yield tmp_path / "lib"
    library.loaded.cache_clear()


def _compiles(made: list[str], content: bytes = b"library") -> object:
    def compile_(compiler: str, instruction_set: str, folder: Path) -> Path:
        made.append(instruction_set)
        time.sleep(0.05)
        (folder / "bodies.so").write_bytes(content)
        return folder / "bodies.so"

    return compile_


def test_without_the_library_an_operator_says_so_once_and_is_right(folder: Path) -> None:
    x, bias = torch.randn(3, 5), torch.randn(5)
    with pytest.warns(UserWarning, match="right but no faster") as caught:
        results = [bias_silu(x, bias) for _ in range(2)]
    assert len(caught) == 1
    assert library.BUILD in str(caught[0].message)
    assert all(torch.equal(result, F.silu(x + bias)) for result in results)


def test_a_file_that_is_no_library_is_no_error(folder: Path) -> None:
    path = library.library_path(library.instruction_sets()[0])
    path.parent.mkdir()
    path.write_bytes(b"cut off")
    with pytest.warns(UserWarning, match="could not be loaded"):
        bias_silu(torch.zeros(2, 3), torch.zeros(3))


def test_a_library_of_another_kind_has_another_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = {library.library_path(one).name for one in library.OPTIONS}
    assert len(names) == len(library.OPTIONS)
    assert all(torch.__version__ in name and platform.machine() in name for name in names)
    before = library.library_path("AVX2")
    (tmp_path / "bodies.cpp").write_text("// changed")
    monkeypatch.setattr(library, "SOURCES", tmp_path)
    library._digest.cache_clear()
    assert library.library_path("AVX2") != before
    library._digest.cache_clear()


@pytest.mark.parametrize(
    ("capability", "sets"),
    [("AVX512", ["AVX512", "AVX2"]), ("AVX2", ["AVX2"]), ("DEFAULT", ["DEFAULT"]), ("NO AVX", ["DEFAULT"])],
)
def test_only_instructions_that_the_processor_has_are_looked_for(
    capability: str, sets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert list(library.instruction_sets()) == sets


def test_of_two_builds_at_once_one_compiles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(build, "_compile", _compiles(made))
    threads = [threading.Thread(target=build.build, args=("AVX2",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["AVX2"]
    assert library.library_path("AVX2").read_bytes() == b"library"


def test_a_killed_build_leaves_no_library_and_the_next_one_clears_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(build, "_compile", lambda compiler, name, place: time.sleep(60))
        build.build("AVX2")
        os._exit(0)
    while not list(folder.glob(build.UNFINISHED + "*")):
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not library.library_path("AVX2").exists()
    monkeypatch.setattr(build, "_compile", _compiles([]))
    build.build("AVX2")
    assert not list(folder.glob(build.UNFINISHED + "*"))
    assert library.library_path("AVX2").exists()


def test_a_full_disk_and_a_folder_that_cannot_be_written_are_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*given: object) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(build, "_compile", full)
    assert build.main([]) == 1
    assert not [path for path in folder.iterdir() if path.name != ".lock"]
    monkeypatch.setattr(library, "FOLDER", Path("/proc/no/such/folder"))
    assert build.main([]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[0] for line in said] == ["Fused operators will run as separate PyTorch operators"] * 2
    assert "No space left on device" in said[0]


def test_without_a_compiler_or_with_one_that_fails_the_reason_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_BUILDER", "import sys; sys.exit('fatal error: no such header')")
    with pytest.raises(KernelError, match="no such header"):
        build.build("AVX2")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(KernelError, match="no g\\+\\+"):
        build.build("AVX2")


def test_a_library_that_does_not_compute_is_not_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_BUILDER", "import pathlib; pathlib.Path('bodies.so').write_bytes(b'no library')")
    monkeypatch.setattr(build, "_TRIAL", "raise OSError('file too short')")
    best = library.instruction_sets()[0]
    with pytest.raises(KernelError, match="do not run on this machine: OSError: file too short"):
        build.build(best)
    assert not library.library_path(best).exists()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_bodies_drop_the_elements_that_the_eager_body_drops(dtype: torch.dtype) -> None:
    bodies = library.loaded()
    assert bodies is not None
    for columns in (1, 3, 4, 63, 64, 65, 130):
        for seed, p in ((7, 0.4), (2**63 - 2, 0.9), (2**40 + 1, 1e-9), (0, 0.5)):
            x, ones, seeds = (
                torch.ones(67, columns, dtype=dtype),
                torch.ones(columns, dtype=dtype),
                torch.tensor([seed]),
            )
            found = bodies.normalise(x, None, torch.zeros_like(x), ones, None, seeds, p, 1e-5, False)
            assert torch.equal(found != 0, dropout_factors(seeds, p, x) != 0), (columns, seed, p)


def test_the_bodies_read_no_memory_of_operands_that_do_not_fit() -> None:
    bodies = library.loaded()
    assert bodies is not None
    x, bias = torch.zeros(2, 3), torch.zeros(3)
    for wrong in (torch.zeros(2), torch.zeros(2, 3), torch.zeros(3, dtype=torch.float64)):
        with pytest.raises(RuntimeError, match="expected vectors"):
            bodies.activate(x, wrong, "silu")
        with pytest.raises(RuntimeError, match="expected rows"):
            bodies.activation_gradients(wrong[:1], x, bias, "silu")
        with pytest.raises(RuntimeError, match="expected"):
            bodies.normalise(x, None, x, wrong, bias, None, 0.0, 1e-5, False)
    with pytest.raises(RuntimeError, match="expected a seed"):
        bodies.normalise(x, None, x, bias, bias, torch.zeros(0, dtype=torch.int64), 0.5, 1e-5, False)


THREADS = """
import torch
from course_lib.kernels.cpu import library
bodies = library.loaded()
x, residual, grad = (torch.randn(3000, 129) for _ in range(3))
bias, weight, seed = torch.randn(129), torch.randn(129), torch.tensor([3])
results = []
for threads in (1, 2):
    torch.set_num_threads(threads)
    results.append([
        bodies.activate(x, bias, "gelu"), *bodies.activation_gradients(grad, x, bias, "gelu"),
        bodies.normalise(x, bias, residual, weight, bias, seed, 0.3, 1e-5, False),
        *bodies.norm_gradients(grad, x, bias, residual, weight, bias, seed, 0.3, 1e-5, False),
    ])
assert len(results[0]) == 9 and all(map(torch.equal, *results))
"""


def test_two_threads_give_the_very_same_numbers() -> None:
    # In a process of its own: threads of OpenMP do not survive a fork.
    subprocess.run([sys.executable, "-c", THREADS], check=True, env=os.environ | {"OMP_NUM_THREADS": "2"})
