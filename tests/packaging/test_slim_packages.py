"""An image loses the large files that no notebook opens, and nothing else."""

import ctypes
import subprocess
import sysconfig
from pathlib import Path

import pytest

from scripts import slim_packages


def test_the_rest_of_a_slimmed_package_stays(tmp_path, capsys):
    kept, removed = tmp_path / "torch" / "bin" / "torch_shm_manager", tmp_path / "torch" / "bin" / "test_jit"
    tests = tmp_path / "torch" / "test" / "deep" / "data"
    for file in (kept, removed, tests):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * 2_000_000)
    slim_packages.remove_unused(tmp_path)
    assert [file.exists() for file in (kept, removed, tests)] == [True, False, False]
    printed = capsys.readouterr().out
    assert "removed torch/test: 2 MB\n" in printed
    assert "removed triton/backends/nvidia/lib/cupti/*.a: 0 MB\n" in printed


def test_a_library_loses_what_a_debugger_reads_and_still_works(tmp_path, capsys):
    library = tmp_path / "triton" / "_C" / "libtriton.so"
    library.parent.mkdir(parents=True)
    source = tmp_path / "answer.cpp"
    source.write_text('extern "C" int answer() { return 42; }\n', encoding="utf-8")
    subprocess.run(["g++", "-g", "-shared", "-fPIC", "-o", library, source], check=True)
    before = library.stat().st_size
    slim_packages.strip_libraries(tmp_path)
    assert library.stat().st_size < before
    assert ctypes.CDLL(str(library)).answer() == 42
    assert capsys.readouterr().out.startswith("stripped triton/_C/*.so: ")


@pytest.mark.parametrize(
    "pattern",
    [p for p in (*slim_packages.UNUSED, *slim_packages.DEBUGGABLE) if not p.startswith("torch/")],  # builds differ
)
def test_what_is_removed_is_there_in_the_pinned_packages(pattern):
    assert list(Path(sysconfig.get_path("purelib")).glob(pattern)), "correct the list in scripts/slim_packages.py"
