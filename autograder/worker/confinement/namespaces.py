"""Namespaces for one job of the zygote, made after the fork; a cold worker gets the same from bubblewrap."""

import os
from pathlib import Path

from autograder.protocol.orders import Mounts
from autograder.worker.confinement import kernel

COURSE = "/course"
_EACH = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWCGROUP
)
_SAFE = kernel.MS_NOSUID | kernel.MS_NODEV


def leave_zygote_namespaces(mounts: Mounts) -> None:
    """Leave the zygote's namespaces; the next child becomes the first process of new ones."""
    uid, gid = os.getuid(), os.getgid()
    kernel.unshare(_EACH | (kernel.CLONE_NEWUSER if mounts.own_users else 0))
    if mounts.own_users:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def mount_worker_view(mounts: Mounts) -> None:
    """Mount /proc, temporary files, terminals and the course, in the first process of the namespace."""
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", "proc", _SAFE | kernel.MS_NOEXEC)
    for place in mounts.covered:
        kernel.mount("tmpfs", place, "tmpfs", _SAFE | kernel.MS_RDONLY, "size=4k,mode=755")
    terminals = "newinstance,ptmxmode=0666,mode=620"
    kernel.mount("devpts", "/dev/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, terminals)
    if mounts.course is not None:
        _mask_course(mounts.course)
    kept = {place: os.open(place, os.O_PATH | os.O_CLOEXEC) for place in mounts.kept}
    for place, size in (("/tmp", mounts.tmp_bytes), ("/dev/shm", mounts.shm_bytes)):
        kernel.mount("tmpfs", place, "tmpfs", _SAFE, f"size={size},mode=1777")
    for place, directory in kept.items():
        _restore(place, directory)
        os.close(directory)


def _restore(place: str, directory: int) -> None:
    """Mount again what a new mount has covered; read-only, because the zygote and all its children share it."""
    Path(place).mkdir()
    Path(place).chmod(0o755)
    kernel.mount(f"/proc/self/fd/{directory}", place, flags=kernel.MS_BIND | kernel.MS_REC)
    kernel.mount("none", place, flags=kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | _SAFE)


def _mask_course(entries: tuple[str, ...]) -> None:
    """Replace the course by a view with only `entries`; the zygote's namespace has no other copy of the course."""
    stage = "/tmp"
    kernel.mount("tmpfs", stage, "tmpfs", _SAFE, "size=1m,mode=755")
    for entry in entries:
        source, target = Path(COURSE, entry), Path(stage, entry)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            target.mkdir()
        else:
            target.touch()
        # A bind of a read-only bind is read-only, too.
        kernel.mount(str(source), str(target), flags=kernel.MS_BIND | kernel.MS_REC)
    kernel.mount(stage, COURSE, flags=kernel.MS_BIND | kernel.MS_REC)
    kernel.unmount(stage)
    flags = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | _SAFE
    kernel.mount("none", COURSE, flags=flags)
