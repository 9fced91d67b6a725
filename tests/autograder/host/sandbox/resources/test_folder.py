"""The private folder of a worker is counted and removed, with any files that a student makes there."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.host.sandbox.resources import folder
from tests.autograder.host.sandbox.conftest import MIB


@pytest.fixture
def private() -> Iterator[Path]:
    place = folder.make()
    yield place
    folder.remove(place)


def deep(place: Path, levels: int) -> None:
    """Make directories in each other, deeper than any path that the kernel takes."""
    before = Path.cwd()
    try:
        os.chdir(place)
        for _ in range(levels):
            os.mkdir("d" * 100)  # noqa: PTH102 - relative, as the path grows too long
            os.chdir("d" * 100)
    finally:
        os.chdir(before)


def test_files_are_counted_wherever_they_lie(private: Path) -> None:
    (private / "home" / "below").mkdir(parents=True)
    (private / "home" / "below" / "file").write_bytes(b"x" * 2 * MIB)

    assert folder.excess(private, [], 3 * MIB) == ""
    assert folder.excess(private, [], 1 * MIB) == "wrote 2 MB of files, where 1 MB are allowed"


def test_a_removed_file_counts_as_long_as_it_is_open(private: Path) -> None:
    with tempfile.TemporaryFile(dir=private) as file:
        file.write(b"x" * 2 * MIB)
        file.flush()

        assert folder.excess(private, [os.getpid()], 1 * MIB).startswith("wrote 2 MB")
        assert folder.excess(private, [], 1 * MIB) == ""
    assert folder.excess(private, [os.getpid()], 1 * MIB) == ""


def test_sparse_files_count_with_their_disk_blocks(private: Path) -> None:
    with (private / "sparse").open("wb") as file:
        file.truncate(1 << 40)

    assert folder.excess(private, [], 1 * MIB) == ""


def test_a_link_to_the_host_is_not_followed(private: Path, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 2 * MIB)
    (private / "link").symlink_to(tmp_path)

    assert folder.excess(private, [], 1 * MIB) == ""
    folder.remove(private)
    assert (tmp_path / "large").exists()


def test_a_folder_too_deep_to_count_ends_the_worker(private: Path) -> None:
    deep(private, 60)

    assert folder.excess(private, [], 1 << 40) == "made a folder that cannot be counted (File name too long)"


def test_too_many_files_are_not_counted_to_the_end(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_ENTRIES", 10)
    for number in range(11):
        (private / str(number)).touch()

    assert folder.excess(private, [], 1 << 40) == "made more than 10 files"


def test_depth_and_rights_do_not_keep_a_folder_from_being_removed(private: Path) -> None:
    deep(private, 1100)
    closed = private / "closed"
    closed.mkdir()
    (closed / "file").touch()
    closed.chmod(0o300)  # can be written to, not listed

    folder.remove(private)

    assert not private.exists()


def test_folders_of_killed_hosts_are_removed_and_those_of_live_hosts_stay(private: Path) -> None:
    dead = Path(tempfile.gettempdir(), f"{folder.PREFIX}-4194305-abc")
    dead.mkdir()

    folder.sweep()

    assert not dead.exists()
    assert private.exists()


def test_a_folder_that_another_host_removes_at_the_same_time_is_nobodys_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / f"{folder.PREFIX}-999999999-abcdefgh"
    monkeypatch.setattr(Path, "glob", lambda *_: iter([gone]))

    folder.sweep()

    assert not gone.exists()
