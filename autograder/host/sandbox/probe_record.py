"""The levels whose probe found nothing on this machine, kept until the next boot.

A record holds for the kernel, user, rights, namespaces, control groups, programs and source files that it was made
with. If one of these changes, the level is probed again. Only this user can enter the folder of the records, and no
worker sees it.
"""

import contextlib
import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from autograder.host.sandbox.view import PACKAGE, course_lib

ROOTS_FOLDER = Path("/run/autograder")
SETTINGS = (
    *("/proc/sys/kernel/random/boot_id", "/proc/version", "/proc/self/cgroup", "/sys/kernel/security/lsm"),
    *("/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
    *("/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/yama/ptrace_scope", "/proc/self/attr/current"),
)
RIGHTS = ("Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:", "Seccomp")
PROGRAMS = ("/usr/bin/bwrap", "/usr/bin/setpriv", "/usr/bin/newuidmap", "/etc/subuid")
SOURCES = ("host/sandbox", "worker", "protocol")


def folder() -> Path | None:
    """Return the folder of the records, made if it is missing; None where no folder is private and ends at boot."""
    place = ROOTS_FOLDER if os.geteuid() == 0 else Path(os.environ.get("XDG_RUNTIME_DIR", ""), "autograder")
    if not place.is_absolute():
        return None
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077:
            return place
    return None


def read(level: int) -> str | None:
    """Return why workers of a level start cold, "" if they do not, as its last probe found; None if none holds."""
    place = folder()
    if place is not None:
        with contextlib.suppress(OSError, ValueError):
            return _file(place, level).read_text()
    return None


def keep(level: int, cold_because: str) -> None:
    """Record that the probe of a level found nothing; where that cannot be written, the next process probes again."""
    place = folder()
    if place is None:
        return
    unfinished = place / f"level-{level:d}.{os.getpid()}"
    with contextlib.suppress(OSError):
        unfinished.write_text(cold_because)
        unfinished.replace(_file(place, level))


def _file(place: Path, level: int) -> Path:
    """Return the path of a level's record; a digest in its name stands for what the result of a probe depends on."""
    digest = hashlib.sha256("\0".join(_facts()).encode(errors="replace")).hexdigest()
    return place / f"level-{level:d}-{digest}"


def _facts() -> Iterator[str]:
    for name in SETTINGS:
        try:
            yield f"{name} {Path(name).read_text(errors='replace')}"
        except OSError as error:
            yield f"{name} {error.errno}"
    yield from (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(RIGHTS))
    yield from sorted(f"{space.name} {space.readlink()}" for space in Path("/proc/self/ns").iterdir())
    yield from (line for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup" in line)
    interpreter = Path(sys.executable).resolve()
    entered = (parent for place in (interpreter, PACKAGE, course_lib()) for parent in (place, *place.parents))
    libraries = Path("/usr/lib").glob("*/libseccomp.so.2")
    for path in (*map(Path, PROGRAMS), *sorted(libraries), *entered, Path(sys.prefix, "lib")):
        yield _state(path)
    for part in SOURCES:
        yield from sorted(map(_state, (PACKAGE / part).rglob("*.py")))


def _state(path: Path) -> str:
    try:
        found = path.stat()
    except OSError as error:
        return f"{path} {error.errno}"
    changed = found.st_mtime_ns if stat.S_ISREG(found.st_mode) else 0
    return f"{path} {found.st_mode} {found.st_uid} {found.st_ino} {found.st_size if changed else 0} {changed}"
