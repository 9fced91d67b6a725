"""Odd folders and names: what lies beside a notebook, in its place, and what a student's folder is called."""

import contextlib
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path

Shape = Callable[[Path, random.Random], None]  # changes the folder of one hand-in, STUDENT/ASSIGNMENT

TIMES = (
    *(
        b"",
        b"now",
        b"12",
        b"10:00",
        b"2026-01-15 12:00:00 UTC and more",
        b"2026-01-15 12:00:00 UTC\n" + b" " * 200 + b"x",
    ),
    *(b"2026-01-15 12:00:00 /etc/passwd", b"9999-12-31 23:59:59 -2359", b"0001-01-01 00:00:00 +2359", b"\xff\xfe\x00"),
    *(
        b"2026-13-45 99:99:99 UTC",
        b"2026-01-15 12:00:00 99999999999",
        b"1e9999",
        b"\x00" * 99,
        b"2026-01-15 12:00:00.5 CEST",
    ),
    *(
        b"x" * 100_000,
        b"2026-01-15T12:00:00Z",
        "２０２６-01-15 12:00:00 UTC".encode(),
        b"-5",
        b"2026-01-15 12:00:00 UTC" + b"\n" * 9,
    ),
)
FILES = (
    *(
        "x" * 240 + ".ipynb",
        "é" * 124 + ".ipynb",
        "a\nb.ipynb",
        "\u202egnp.ipynb",
        "-rf",
        "*",
        "~",
        " ",
        "😀" * 40,
        "a'b\"c",
    ),
    *(
        "$(id)",
        "con.txt",
        "..x",
        "torch.py",
        "sitecustomize.py",
        "nbgrader_config.py",
        "x" * 255,
        "copy (1).ipynb",
        ".hidden",
    ),
    *("gradebook.db", "%s%n", "{0}", "a;b", "\\", "conftest.py", "\udcff.ipynb", "submission_secret.txt"),
)
STUDENTS = (
    *(
        "mallory ",
        " mallory",
        "jose\u0301",
        "anne marie",
        "a+b",
        "a@b.org",
        "x.y",
        "-rf",
        "*",
        "[a]",
        "a\nb",
        "\u202exyz",
        "x" * 100,
    ),
    *(
        "x" * 101,
        "x" * 255,
        "é" * 127,
        "😀",
        "李明",
        "autograded",
        "a,b",
        "'a'",
        "%s",
        "{0}",
        "None",
        "..x",
        ".hidden",
        "=1+1",
        "\udcff",
    ),
    *(
        "a\tb",
        "０１",
        "ⅷ",
        "ﬁ",
        "\u200bz",
        "good_0 ",
        "Good_1",
        "good_2\u0301",
        "__MACOSX",
        "a__b",
        "con",
        "nul.txt",
        "a\\b",
        "~",
        "$HOME",
    ),
)


def several_notebooks(folder: Path, draw: random.Random) -> None:
    """Lay a second notebook, or many, beside the right one."""
    for name in draw.sample(FILES, 3):
        _write(folder, name if name.endswith(".ipynb") else f"{draw.randrange(99)}.ipynb")


def other_files(folder: Path, draw: random.Random) -> None:
    """Lay files of any names beside the notebook."""
    for name in draw.sample(FILES, draw.choice((1, 3, 9))):
        _write(folder, name)
    for number in range(draw.choice((0, 0, 200))):
        _write(folder, f"file {number}")


def another_name(folder: Path, draw: random.Random) -> None:
    """Call the notebook something else."""
    notebook = folder / f"{folder.name}.ipynb"
    notebook.rename(folder / draw.choice([name for name in FILES if name.endswith(".ipynb")]))


def timestamp(folder: Path, draw: random.Random) -> None:
    """Write anything into timestamp.txt."""
    (folder / "timestamp.txt").unlink(missing_ok=True)  # it may be a pipe by now
    (folder / "timestamp.txt").write_bytes(draw.choice(TIMES))


def secret(folder: Path, draw: random.Random) -> None:
    """Write anything into the file with which feedback is fetched."""
    (folder / "submission_secret.txt").unlink(missing_ok=True)
    (folder / "submission_secret.txt").write_bytes(
        draw.choice((b"", b"\xff\xfe", b"../../x", b"x" * 10**6, b"\0", b"a" * 40))
    )


def links(folder: Path, draw: random.Random) -> None:
    """Lay symbolic and hard links into the folder, also in the notebook's place."""
    name = draw.choice((f"{folder.name}.ipynb", "timestamp.txt", "data", "submission_secret.txt"))
    target = draw.choice(
        (
            "/",
            "/etc/passwd",
            "nowhere",
            ".",
            "../..",
            f"../../good_0/{folder.name}/{folder.name}.ipynb",
            name,
            "/dev/zero",
        )
    )
    (folder / name).unlink(missing_ok=True)
    if draw.random() < 0.3:
        os.link(folder.parents[2] / "gradebook.db", folder / "hard.ipynb")
    (folder / name).symlink_to(target)


def no_files(folder: Path, draw: random.Random) -> None:
    """Lay a pipe, a socket or a folder where a file is expected."""
    name = draw.choice((f"{folder.name}.ipynb", "timestamp.txt", "pipe", "submission_secret.txt"))
    (folder / name).unlink(missing_ok=True)
    kind = draw.choice(("pipe", "folder", "socket"))
    if kind == "pipe":
        os.mkfifo(folder / name)
    elif kind == "folder":
        (folder / name).mkdir()
        _write(folder / name, "inside.txt")
    else:
        here = os.open(folder, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as made, contextlib.suppress(OSError):
            made.bind(f"/proc/self/fd/{here}/{name}")  # the whole path would be too long for a socket
        os.close(here)


def deep_folders(folder: Path, draw: random.Random) -> None:
    """Nest folders deeper than a path may be long."""
    name = "d" * draw.choice((1, 200))
    here = os.open(folder, os.O_RDONLY)
    for _ in range(draw.choice((3, 60))):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.symlink("/", "root", dir_fd=here)
    os.close(here)


def sizes(folder: Path, draw: random.Random) -> None:
    """Lay a file of 500 MB without content beside the notebook, or make the notebook too large to be read."""
    name, size = draw.choice(
        (("data.bin", 500 << 20), (f"{folder.name}.ipynb", (64 << 20) + 1), (f"{folder.name}.ipynb", 0))
    )
    (folder / name).unlink(missing_ok=True)
    with (folder / name).open("wb") as file:
        file.truncate(size)


def modes(folder: Path, draw: random.Random) -> None:
    """Take rights away from notebook and folder; they bind who does not grade as root."""
    notebook, rights = folder / f"{folder.name}.ipynb", draw.choice((0o000, 0o200, 0o777))
    if not notebook.is_symlink():  # else the rights of what it leads to would change, which may be the machine's root
        notebook.chmod(rights)
    folder.chmod(draw.choice((0o700, 0o755, 0o777)))


def assignment_names(folder: Path, draw: random.Random) -> None:
    """Lay folders of nearly the assignment's name beside it, or hand in under such a name only."""
    name = draw.choice(
        (f"{folder.name} ", folder.name.upper(), f"{folder.name}\n", "unknown", f"{folder.name}.ipynb", "x" * 255)
    )
    if draw.random() < 0.5:
        folder.rename(folder.with_name(name))
    else:
        folder.with_name(name).mkdir()


SHAPES: tuple[Shape, ...] = (
    *(several_notebooks, other_files, another_name, timestamp, timestamp, secret, links, no_files, deep_folders, sizes),
    *(modes, assignment_names),
)


def _write(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_text("{}")


def odd_folder(folder: Path, draw: random.Random) -> str:
    """Change the folder of a hand-in in one or two ways; return their names."""
    names = []
    for shape in draw.sample(SHAPES, draw.choice((1, 1, 2))):
        with contextlib.suppress(FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError):
            shape(folder, draw)  # an earlier one may have taken what this one changes
            names.append(shape.__name__)
    return " ".join(names)
