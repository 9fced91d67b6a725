"""Remove from this Python's packages the large files that the course never opens: slim_packages.py [SITE_PACKAGES].

It also strips from libraries what only a debugger reads. Prints each pattern with the size of what it removed, in MB of
10^6 bytes; 0 MB where this build of a package has none. Standard library only, because it runs in the layer that
installs the packages, before the course is there.
"""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

UNUSED = (
    # converters of TensorFlow models for Model Explorer, which goes on without them; PyTorch's programs need none
    "ai_edge_model_explorer_adapter",
    # PyTorch's and ONNX's own tests
    "torch/test",
    "torch/bin/test_*",
    "onnx/backend/test/data",
    # CUDA's profiling libraries for linking, which nothing links; those that are loaded stay
    "triton/backends/nvidia/lib/cupti/*.a",
)
# Libraries with debugging information, which is more than half of Triton's.
DEBUGGABLE = ("triton/_C/*.so",)


def remove_unused(packages: Path) -> None:
    """Remove what the patterns of `UNUSED` find in the folder `packages`, and print how much that was."""
    for pattern in UNUSED:
        found = sorted(packages.glob(pattern))
        print(f"removed {pattern}: {sum(map(_size, found)) / 1e6:.0f} MB")
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def strip_libraries(packages: Path) -> None:
    """Remove debugging information from the libraries of `DEBUGGABLE`, with `strip`, which g++ brings."""
    strip = shutil.which("strip")
    for pattern in DEBUGGABLE if strip else ():
        libraries = sorted(packages.glob(pattern))
        before = sum(map(_size, libraries))
        for library in libraries:
            subprocess.run([str(strip), "--strip-debug", str(library)], check=True)
        print(f"stripped {pattern}: {(before - sum(map(_size, libraries))) / 1e6:.0f} MB")


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


if __name__ == "__main__":
    site_packages = Path(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_path("purelib"))
    remove_unused(site_packages)
    strip_libraries(site_packages)
