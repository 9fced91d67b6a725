"""Control groups: version 1 where the machine has it, version 2 against a directory that looks like one."""

import os
from pathlib import Path

import pytest

from autograder.host.sandbox.resources import cgroup
from autograder.host.sandbox.resources.cgroup import Group, Hierarchy, find_hierarchy
from tests import skips
from tests.autograder.host.sandbox.conftest import LIMITS

FILES_OF_VERSION_2 = (
    *("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.weight"),
    *("cgroup.procs", "cgroup.kill"),
)


@pytest.fixture
def version_2(tmp_path: Path) -> Group:
    directory = tmp_path / "autograder-1-0"
    directory.mkdir()
    for name in FILES_OF_VERSION_2:
        (directory / name).touch()
    (directory / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 1\n")
    return Group(2, (directory,), shares_processors=True)


def test_version_2_is_written_as_its_documentation_says(version_2: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "mkdir", lambda self: None)

    version_2.create(LIMITS)
    version_2.add(42)
    version_2.kill()

    written = {name: (version_2.directories[0] / name).read_text() for name in FILES_OF_VERSION_2}
    assert written == {
        "memory.max": str(LIMITS.memory_bytes),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": str(LIMITS.processes + 1),
        "cpu.weight": "100",
        "cgroup.procs": "42",
        "cgroup.kill": "1",
    }
    assert version_2.oom_kills() == 2


def test_a_group_without_the_controllers_is_refused_and_removed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no memory\.max"):
        Hierarchy(2, (tmp_path,), shares_processors=False).group(LIMITS)

    assert list(tmp_path.iterdir()) == []


def test_groups_of_dead_hosts_are_removed_and_those_of_live_hosts_stay(tmp_path: Path) -> None:
    dead, living, foreign = (tmp_path / name for name in ("autograder-4194305-0", f"autograder-{os.getpid()}-0", "x"))
    for directory in (dead, living, foreign):
        directory.mkdir()

    Hierarchy(2, (tmp_path,), shares_processors=False).sweep()

    assert set(tmp_path.iterdir()) == {living, foreign}


@pytest.mark.parametrize(
    ("groups", "mounts", "expected"),
    [
        ("0::/user.slice/a.scope", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw", {"": "user.slice/a.scope"}),
        ("0::/", "30 24 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw", {}),
        (
            "4:memory:/docker/1/x\n3:cpu,cpuacct:/",
            "36 35 0:31 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
            {"memory": "memory/x"},
        ),
    ],
    ids=["version 2", "version 2, outside its mount", "version 1 in a container"],
)
def test_the_own_group_is_found_below_its_mount(
    groups: str, mounts: str, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"/proc/self/cgroup": groups, "/proc/self/mountinfo": mounts}
    monkeypatch.setattr(Path, "read_text", lambda self: texts[str(self)])

    assert cgroup._directories_of("self") == {name: Path("/sys/fs/cgroup", path) for name, path in expected.items()}


class FakeHierarchy:
    """A directory with the files of version 2, which refuses controllers to a group that holds processes."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, *, controllers: str = "cpu memory pids") -> None:
        self.root = root
        (root / "cgroup.controllers").write_text(controllers)
        (root / "cgroup.subtree_control").write_text("")
        (root / "cgroup.procs").write_text("41\n42\n")
        write = Path.write_text

        def write_text(place: Path, text: str) -> int:
            if place.name == "cgroup.procs" and place.parent != root:
                left = set((root / "cgroup.procs").read_text().split()) - {text}
                write(root / "cgroup.procs", "\n".join(sorted(left)))
                return write(place, (place.read_text() if place.exists() else "") + text + "\n")
            if place.name == "cgroup.subtree_control":
                if (root / "cgroup.procs").read_text():
                    raise OSError(16, "Device or resource busy")
                text = text.replace("+", "")
                if not set(text.split()) <= set((root / "cgroup.controllers").read_text().split()):
                    raise OSError(2, "No such file or directory")
            return write(place, text)

        monkeypatch.setattr(Path, "write_text", write_text)
        monkeypatch.setattr(cgroup, "_directories_of", lambda process: {"": root})


def test_processes_of_a_delegated_group_move_into_a_child_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeHierarchy(tmp_path, monkeypatch)

    assert next(cgroup._candidates()) == Hierarchy(2, (tmp_path,), shares_processors=True)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "cpu memory pids"
    assert set((fake.root / "autograder-hosts" / "cgroup.procs").read_text().split()) == {"41", "42"}


def test_without_the_controller_of_processors_the_others_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeHierarchy(tmp_path, monkeypatch, controllers="memory pids")

    assert list(cgroup._candidates()) == [Hierarchy(2, (tmp_path,), shares_processors=False)]
    assert (tmp_path / "cgroup.subtree_control").read_text() == "memory pids"


def test_version_1_divides_the_processors_where_their_controller_is(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {name: Path("/sys/fs/cgroup", name) for name in ("memory", "pids", "cpu")}
    monkeypatch.setattr(cgroup, "_directories_of", lambda process: own)

    assert list(cgroup._candidates()) == [
        Hierarchy(1, (own["memory"], own["pids"], own["cpu"]), shares_processors=True),
        Hierarchy(1, (own["memory"], own["pids"]), shares_processors=False),
    ]


def test_nothing_is_moved_where_controllers_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeHierarchy(tmp_path, monkeypatch, controllers="cpu io")

    assert list(cgroup._candidates()) == []
    assert (fake.root / "cgroup.procs").read_text() == "41\n42\n"
    assert not (fake.root / "autograder-hosts").exists()


def test_nothing_is_moved_in_a_group_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeHierarchy(tmp_path, monkeypatch)
    monkeypatch.setattr(cgroup.os, "geteuid", lambda: os.getuid() + 1)

    assert list(cgroup._candidates()) == []
    assert (fake.root / "cgroup.procs").read_text() == "41\n42\n"


def test_a_group_of_this_machine_is_made_and_removed() -> None:
    hierarchy = find_hierarchy()
    if hierarchy is None:
        pytest.skip(f"{skips.KERNEL}: control groups")

    group = hierarchy.group(LIMITS)
    try:
        assert all(directory.is_dir() for directory in group.directories)
        assert group.oom_kills() == 0
        shares = [directory / "cpu.shares" for directory in group.directories]
        assert any(map(Path.exists, shares)) == (hierarchy.version == 1 and hierarchy.shares_processors)
    finally:
        group.remove()

    assert not any(directory.exists() for directory in group.directories)
