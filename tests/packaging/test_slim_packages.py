"""An image loses the large files that no notebook opens, and nothing else."""

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


@pytest.mark.parametrize("pattern", [p for p in slim_packages.UNUSED if not p.startswith("torch/")])  # builds differ
def test_what_is_removed_is_there_in_the_pinned_packages(pattern):
    assert list(Path(sysconfig.get_path("purelib")).glob(pattern)), "correct the list in scripts/slim_packages.py"
