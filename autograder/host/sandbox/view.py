"""The files that a worker sees: the interpreter, installed packages, and the part of the course that it needs.

Nothing else of the host is bound: not /home, not the rest of the project, not /usr/share. /usr/local/share is not bound
either: nbgrader keeps the exchange there by default.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from autograder.host.sandbox.levels import SandboxError

COURSE = "/course"
PACKAGE = Path(__file__).parents[2]  # autograder/
TEMPORARY = (("/", "tmp"), ("/", "dev", "shm"))
PROJECT_PACKAGES = ("autograder", "course_lib")

# The bound parts of a prefix such as /usr or a conda environment; never share/ or src/.
PREFIX_PARTS = ("bin", "lib", "lib32", "lib64", "libexec", "include", "*-linux-gnu")
TOP_LEVEL = ("bin", "lib", "lib32", "lib64")
# The loader's cache, and the target of /usr/bin/c++, which torch.compile looks for.
ETC_FILES = ("/etc/ld.so.cache", "/etc/alternatives")


@dataclass(frozen=True)
class Bind:
    """A file or folder of the host, read-only at `target`."""

    source: str
    target: str


@dataclass(frozen=True)
class Link:
    """A symbolic link at `target`."""

    points_to: str
    target: str


@dataclass(frozen=True)
class Cover:
    """An empty folder over a part of an earlier bind that the worker must not see."""

    target: str


@dataclass(frozen=True)
class Emptied:
    """A file of an earlier bind that has no content for the worker: a module in it imports, and is empty.

    Only a mount does this. Landlock could refuse to open the file, and then torch, which imports it, could not start.
    """

    target: str


@dataclass(frozen=True)
class DeviceNode:
    """A device node of the host, usable as it is."""

    target: str


Mount = Bind | Link | Cover | Emptied | DeviceNode
EMPTY = str(PACKAGE / "__init__.py")
"""A file that every worker may read, and that defines nothing."""


def file_system(masked: Sequence[str] = ()) -> list[Mount]:
    """Return all mounts in the order in which they must be made."""
    # Without duplicates: the interpreter's prefix may be one of the system's.
    binds = list(dict.fromkeys([*_system(), *_prefix(sys.base_prefix)]))
    mounts: list[Mount] = [*binds, *_cover_project(binds)]
    if sys.prefix != sys.base_prefix:
        mounts += _prefix(sys.prefix)
        mounts.append(Bind(f"{sys.prefix}/pyvenv.cfg", f"{sys.prefix}/pyvenv.cfg"))
    mounts += _cover_installed()
    mounts += [mount for name in outside_course(masked) for mount in _masks_of(name)]
    mounts += [Bind(str(source), f"{COURSE}/{target}") for source, target in course(masked)]
    return mounts


def below_temporary(mounts: Iterable[Mount]) -> list[str]:
    """Return the folders below /tmp and /dev/shm that the worker needs, for a project that lies there.

    Each worker mounts empty file systems on /tmp and /dev/shm, which must not hide its interpreter.
    """
    targets = [Path(mount.target).parts for mount in mounts]
    found = [parts[: len(place) + 1] for parts in targets for place in TEMPORARY if parts[: len(place)] == place]
    return sorted({str(Path(*parts)) for parts in found})


def with_parents(mounts: Iterable[Mount]) -> Iterator[tuple[Mount, list[str]]]:
    """Yield each mount with the folders that must be made for it, outermost first."""
    made: dict[Path, bool] = {Path("/"): True}  # folder to whether folders can be made below it
    for mount in mounts:
        missing = []
        for parent in reversed(Path(mount.target).parents):
            if parent not in made:
                made[parent] = made[parent.parent]
                if made[parent]:
                    missing.append(str(parent))
        yield mount, missing
        made[Path(mount.target)] = isinstance(mount, Cover)


def course(masked: Sequence[str] = ()) -> list[tuple[Path, str]]:
    """Return each host file or folder that the worker imports, with its path below the course root.

    `masked` names packages or modules of course_lib to leave out; a name that matches nothing raises `SandboxError`.
    Packages of others among them are left to `file_system`.
    """
    parts = [PACKAGE / "__init__.py", PACKAGE / "protocol", PACKAGE / "worker"]
    shown = [(part, f"autograder/{part.name}") for part in parts if part.exists()]
    outside = outside_course(masked)
    for name in outside:
        _masks_of(name)  # so that an unknown name is refused at every level
    hidden = {_path_in_course_lib(name) for name in masked if name not in outside}
    return [*shown, *_without(course_lib(), "course_lib", hidden)]


def course_lib() -> Path:
    """Return the folder of course_lib without importing it."""
    spec = find_spec("course_lib")
    if spec is None or not spec.submodule_search_locations:
        raise SandboxError("course_lib is not importable here; install the project with `pip install -e .` first.")
    return Path(next(iter(spec.submodule_search_locations)))


def outside_course(masked: Sequence[str]) -> list[str]:
    """Return the packages and modules among `masked` that are not of course_lib; a zygote may have imported them.

    >>> outside_course(["course_lib.fusion", "torch._dynamo"])
    ['torch._dynamo']
    """
    return [name for name in masked if name.partition(".")[0] != "course_lib"]


def _masks_of(name: str) -> list[Cover | Emptied]:
    """Return what hides an installed package or module, also by its resolved path, without importing anything."""
    first, *rest = name.split(".")
    spec = find_spec(first)
    folders = spec.submodule_search_locations if spec else None
    place = Path(next(iter(folders or ["/"])), *rest)
    # the byte code of a module holds all that its text does
    files = [*place.parent.glob(f"{place.name}.py"), *place.parent.glob(f"__pycache__/{place.name}.*.pyc")]
    if not folders or first in PROJECT_PACKAGES or not (place.is_dir() or files):
        raise SandboxError(
            f"{name!r} cannot be masked: it names no package below course_lib and no other that a worker can spare."
        )
    if place.is_dir():
        return [Cover(each) for each in sorted({str(place), os.path.realpath(place)})]
    return [Emptied(each) for each in sorted({path for file in files for path in (str(file), os.path.realpath(file))})]


def _path_in_course_lib(name: str) -> tuple[str, ...]:
    first, *rest = name.split(".")
    place = course_lib().joinpath(*rest)
    if first != "course_lib" or not rest or not (place.is_dir() or place.with_suffix(".py").is_file()):
        raise SandboxError(f"{name!r} cannot be masked: it names no package or module below course_lib.")
    return tuple(rest)


def _without(source: Path, target: str, hidden: set[tuple[str, ...]]) -> Iterator[tuple[Path, str]]:
    """Yield `source` whole if nothing in it is hidden, else its entries without the hidden ones."""
    if not hidden:
        yield source, target
        return
    for entry in sorted(source.iterdir()):
        name = entry.name.removesuffix(".py")
        # __pycache__ also holds byte code of hidden modules.
        if entry.name == "__pycache__" or (name,) in hidden:
            continue
        deeper = {path[1:] for path in hidden if path[0] == name and len(path) > 1}
        yield from _without(entry, f"{target}/{entry.name}", deeper)


def _system() -> Iterator[Bind | Link]:
    for prefix in ("/usr", "/usr/local"):
        yield from _prefix(prefix)
    for name in TOP_LEVEL:
        place = Path("/", name)
        if place.is_symlink():
            yield Link(str(place.readlink()), str(place))
        elif place.exists():
            yield Bind(str(place), str(place))
    yield from (Bind(path, path) for path in ETC_FILES if Path(path).exists())


def _prefix(prefix: str) -> Iterator[Bind | Link]:
    """Yield the needed parts of a prefix, also under its resolved path: a virtual environment may use that."""
    for root in sorted({prefix, os.path.realpath(prefix)}):
        for pattern in PREFIX_PARTS:
            for place in sorted(Path(root).glob(pattern)):
                if place.is_symlink():
                    yield Link(str(place.readlink()), str(place))
                elif place.is_dir():
                    yield Bind(str(place), str(place))


def _cover_project(binds: Iterable[Mount]) -> Iterator[Cover]:
    """Cover the project's root where a checkout lies inside a bound folder."""
    root = PACKAGE.parent
    bound = any(isinstance(bind, Bind) and root.is_relative_to(bind.target) for bind in binds)
    if bound and root.name not in ("site-packages", "dist-packages"):
        yield Cover(str(root))


def _cover_installed() -> Iterator[Cover]:
    """Cover installed copies of our packages, because they contain the host."""
    for directory in sys.path:
        if Path(directory).name in ("site-packages", "dist-packages"):
            for name in PROJECT_PACKAGES:
                if Path(directory, name).is_dir():
                    yield Cover(str(Path(directory, name)))
