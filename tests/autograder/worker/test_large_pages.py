"""Private memory of a zygote is collapsed into large pages where possible, and its content stays."""

import mmap
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder.worker.zygote.zygote import private_ranges
from tests import skips
from tests.autograder.host.sandbox.conftest import opened

KERNEL = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
needs_large_pages = pytest.mark.skipif(
    KERNEL < (6, 1) or not Path("/sys/kernel/mm/transparent_hugepage").exists() or mmap.PAGESIZE != 4096,
    reason=f"{skips.KERNEL}: collapsing pages needs Linux 6.1 with transparent large pages, and ordinary ones of 4 KiB",
)
DONE = """
import mmap
from autograder.worker.zygote.zygote import collapse_pages
memory = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE if {never} else mmap.MADV_NORMAL)
for place in range(0, len(memory), 4096):
    memory[place] = place // 4096 % 251
steps = sum(1 for _ in collapse_pages())
assert all(memory[place] == place // 4096 % 251 for place in range(0, len(memory), 4096))
lines = open("/proc/self/smaps_rollup").read().splitlines()
print(steps, *(line.split()[1] for line in lines if line.startswith("AnonHugePages")))
"""


@needs_large_pages
@pytest.mark.parametrize("never", [False, True])
def test_memory_is_collapsed_where_possible_and_its_content_stays(never: bool) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", DONE.format(never=never)], capture_output=True, text=True, check=True, timeout=60
    )
    steps, large_kib = map(int, ended.stdout.split())
    assert steps >= 4
    assert (large_kib >= 56 * 1024) is not never


@needs_large_pages
def test_a_zygote_collapses_its_memory_while_no_request_waits() -> None:
    zygotes = opened(5).zygotes
    assert zygotes is not None
    zygotes.warm()
    assert zygotes._current is not None
    memory = Path(f"/proc/{zygotes._current.process.pid}/smaps_rollup")
    deadline = time.monotonic() + 30
    while (large := kib_of("AnonHugePages", memory)) < kib_of("Anonymous", memory) / 2:
        assert time.monotonic() < deadline, f"{large} KiB in large pages"
        time.sleep(0.1)


def kib_of(what: str, memory: Path) -> int:
    """One line of a summary of a process's memory."""
    return next(int(line.split()[1]) for line in memory.read_text().splitlines() if line.startswith(what + ":"))


def test_only_whole_large_pages_of_private_memory_without_a_file_count() -> None:
    maps = (
        "55d000000000-55d000400000 rw-p 00000000 00:00 0                          [heap]\n"
        "7f0000100000-7f0000700000 rw-p 00000000 00:00 0 \n"
        "7f0001000000-7f0001800000 r--p 00000000 00:00 0 \n"
        "7f0002000000-7f0002800000 rw-s 00000000 00:01 7                          /memfd:arena (deleted)\n"
        "7f0003000000-7f0003800000 rw-p 00000000 fe:00 9                          /usr/lib/libtorch_cpu.so\n"
        "7f0004000000-7f0004100000 rw-p 00000000 00:00 0 \n"
        "7ffd00000000-7ffd00800000 rw-p 00000000 00:00 0                          [stack]\n"
    )
    expected = [(0x55D000000000, 0x55D000400000), (0x7F0000200000, 0x7F0000600000)]
    assert list(private_ranges(maps)) == expected
