"""The private folder of a worker that shares the host's file system: make it, fill it, measure it, remove it."""

import contextlib
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from autograder.host.sandbox.resource_limits import MIB
from autograder.host.sandbox.view import course

PREFIX = "autograder-worker"
_HOST_PID = re.compile(rf"{PREFIX}-(\d+)-\w+")
MAX_ENTRIES = 50_000
"""A worker with more files is killed, since counting them would take longer than writing them."""


def make() -> Path:
    """Make an empty folder that only this user may enter."""
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}-{os.getpid()}-"))


def link_course(private: Path, masked: Sequence[str]) -> Path:
    """Make the course in `private` out of links, without the masked parts; return its root."""
    root = private / "course"
    for source, target in course(masked):
        place = root / target
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(source)
    for directory, _, _ in os.walk(root):
        Path(directory).chmod(0o755)  # the worker may be another user, and this user's umask may forbid reading
    return root


def remove(private: Path) -> None:
    """Remove a folder of any depth and with any access rights; never follow links."""
    # By `rm`, because Python's own function fails at a depth that a student can reach.
    done = _quietly("rm", "-rf", "--", str(private))
    if done != 0:
        _quietly("chmod", "-R", "u+rwX", "--", str(private))
        _quietly("rm", "-rf", "--", str(private))


def sweep() -> None:
    """Remove the folders of hosts that were killed."""
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}-*"):
        match = _HOST_PID.fullmatch(place.name)
        with contextlib.suppress(FileNotFoundError):  # another host has removed it since it was listed
            if match and place.lstat().st_uid == os.geteuid() and not Path("/proc", match[1]).exists():
                remove(place)


def excess(private: Path, processes: Iterable[int], allowed_bytes: int) -> str:
    """Return a sentence if the folder and deleted files that `processes` hold open exceed `allowed_bytes`, else ""."""
    try:
        held = sum(_below(private)) + sum(_removed_but_open(processes, private.stat().st_dev))
    except _TooManyError:
        return f"made more than {MAX_ENTRIES} files"
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"made a folder that cannot be counted ({error.strerror})"
    if held <= allowed_bytes:
        return ""
    return f"wrote {held / MIB:.0f} MB of files, where {allowed_bytes / MIB:.0f} MB are allowed"


class _TooManyError(Exception):
    """The folder has more than `MAX_ENTRIES` entries."""


def _below(private: Path) -> Iterator[int]:
    open_directories = [str(private)]
    entries = 0
    while open_directories:
        with contextlib.suppress(FileNotFoundError), os.scandir(open_directories.pop()) as found:
            for entry in found:
                entries += 1
                if entries > MAX_ENTRIES:
                    raise _TooManyError
                with contextlib.suppress(FileNotFoundError):
                    yield entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        open_directories.append(entry.path)


def _removed_but_open(processes: Iterable[int], device: int) -> Iterator[int]:
    """Yield the size of each deleted file that is still open, where this process may look."""
    sizes: dict[int, int] = {}
    for process in processes:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{process}/fd"):  # noqa: PTH208 - names are enough
                with contextlib.suppress(OSError):
                    state = os.stat(f"/proc/{process}/fd/{name}")  # noqa: PTH116 - follows to the open file
                    if stat.S_ISREG(state.st_mode) and state.st_nlink == 0 and state.st_dev == device:
                        sizes[state.st_ino] = state.st_blocks * 512
    yield from sizes.values()


def _quietly(*command: str) -> int:
    return subprocess.run(
        command, env={"PATH": "/usr/bin:/bin"}, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=False
    ).returncode
