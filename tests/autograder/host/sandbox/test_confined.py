"""Landlock and seccomp instead of namespaces: the rules for each kernel version, and what they refuse."""

import errno
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.host.sandbox import Ending, SandboxError, confined, seccomp, view
from autograder.host.sandbox.confined import Confined, landlock_version
from autograder.host.sandbox.inside.attacks import ATTACKS
from autograder.host.sandbox.levels import Level
from autograder.host.sandbox.view import Bind, Cover
from autograder.protocol.orders import Files
from autograder.worker.confinement import kernel, self_confinement
from tests import skips
from tests.autograder.host.sandbox.conftest import LIMITS
from tests.autograder.host.sandbox.conftest import opened as open_level

ROOT = Path(__file__).parents[4]
PYTHON = "/usr/bin/python3"
ORDINARY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
# The capabilities of root in a Docker container without options.
CONTAINER_CAPABILITIES = (
    "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot"
    ",+mknod,+audit_write,+setfcap"
)
SETTING = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
REFUSE_NAMESPACES = """
from autograder.host.sandbox import seccomp
from autograder.worker.confinement import kernel
rules = seccomp._Filter()
for name in ("unshare", "setns", "mount", "umount2", "pivot_root", "ptrace", "keyctl", "bpf"):
    rules.refuse(name)
for flag in seccomp.CLONE_NEW:
    rules.refuse("clone", seccomp._Comparison(0, seccomp.MASKED_EQUAL, flag, flag))
rules.refuse("clone3", error=38)
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
kernel.filter_system_calls(rules.program())
"""
needs_landlock = pytest.mark.skipif(landlock_version() < 1, reason=f"{skips.KERNEL}: Landlock")
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not Path(PYTHON).exists(), reason=f"{skips.ROOT}, and an interpreter that all may read"
)


def outside(program: str, *become: str) -> str:
    """Run a program of the host as another user, or with fewer rights; skip if it may not read this checkout."""
    if subprocess.run([*ORDINARY, "test", "-r", str(ROOT / "autograder")], check=False).returncode:
        pytest.skip(f"{skips.PLACE}: this checkout")
    done = subprocess.run(
        [*become, PYTHON, "-I", "-B", "-c", SETTING + program],
        env={"TOKEN_OF_THE_HOST": "token"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


class FakeKernel:
    """A kernel that records the calls of Landlock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.handled: tuple[int, ...] = ()
        self.allowed: dict[str, int] = {}
        monkeypatch.setattr(kernel, "syscall", self)

    def __call__(self, number: int, *arguments: object) -> int:
        if number == self_confinement.CREATE_RULESET:
            attributes, size, flags = arguments
            assert isinstance(attributes, bytes)
            assert (size, flags) == (len(attributes), 0)
            self.handled = struct.unpack(f"={len(attributes) // 8}Q", attributes)
        else:
            assert number == self_confinement.ADD_RULE
            assert isinstance(arguments[2], bytes)
            rights, place = struct.unpack("=Qi", arguments[2])
            self.allowed[os.readlink(f"/proc/self/fd/{place}")] = rights  # noqa: PTH115 - a number, not a path
        return 99


@pytest.mark.parametrize(
    ("abi", "handled"),
    [
        (1, (0x1FFF,)),
        (2, (0x3FFF,)),
        (3, (0x7FFF,)),
        (4, (0x7FFF, 3)),
        (5, (0xFFFF, 3)),
        (6, (0xFFFF, 3, 3)),
        (7, (0xFFFF, 3, 3)),
    ],
)
def test_each_version_of_landlock_gets_only_rights_that_it_knows(
    abi: int, handled: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeKernel(monkeypatch)
    (tmp_path / "read").touch()
    (tmp_path / "home").mkdir()
    files = Files(
        abi, (str(tmp_path / "read"), "/missing"), (str(tmp_path),), (str(tmp_path / "home"),), ("/dev/null",)
    )

    self_confinement.landlock_ruleset(files)

    assert fake.handled == handled
    assert (
        fake.allowed[str(tmp_path / "read")] == self_confinement.EXECUTE | self_confinement.READ_FILE
    )  # not READ_DIR: it is a file
    assert fake.allowed[str(tmp_path)] == self_confinement.READ_DIR
    home = fake.allowed[str(tmp_path / "home")]
    assert home & (self_confinement.MAKE_CHAR | self_confinement.MAKE_BLOCK) == 0
    assert home & self_confinement.WRITE_FILE
    assert all(rights & ~handled[0] == 0 for rights in fake.allowed.values())
    assert not fake.allowed["/dev/null"] & self_confinement.EXECUTE


NUMBERS = {"kill": 62, "tgkill": 234, "tkill": 200, "pidfd_open": 434}
PID = 4242


def decide(program: bytes, number: int, first: int) -> int:
    """Run a filter as the kernel would, for the instructions that it uses."""
    data = struct.pack("=IIQQ", number, 0, 0, first & 0xFFFFFFFFFFFFFFFF)
    accumulator = place = 0
    while True:
        code, then, otherwise, value = struct.unpack_from("=HBBI", program, 8 * place)
        place += 1
        if code == self_confinement.LOAD:
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif code == self_confinement.EQUAL:
            place += then if accumulator == value else otherwise
        else:
            assert code == self_confinement.RETURN
            return int(value)


@pytest.mark.parametrize(
    ("number", "first", "allowed"),
    [
        (NUMBERS["kill"], PID, True),
        (NUMBERS["kill"], 0, True),
        (NUMBERS["kill"], -1, False),
        (NUMBERS["kill"], -PID, False),
        (NUMBERS["kill"], 1, False),
        (NUMBERS["tgkill"], PID, True),
        (NUMBERS["tgkill"], 0, False),
        (NUMBERS["tgkill"], PID + 1, False),
        (NUMBERS["tkill"], PID + 1, False),
        (NUMBERS["pidfd_open"], PID, False),
        (0, 1, True),
    ],
)
def test_the_filter_on_signals_lets_a_process_reach_only_itself_and_its_group(
    number: int, first: int, allowed: bool
) -> None:
    verdict = decide(self_confinement.signal_filter(PID, NUMBERS), number, first)

    assert verdict == (self_confinement.ALLOW if allowed else self_confinement.REFUSE)
    assert self_confinement.REFUSE & 0xFFFF == errno.EPERM


def test_every_call_that_sends_signals_has_a_number_here() -> None:
    assert set(seccomp.numbers(seccomp.SIGNALS)) == set(seccomp.SIGNALS)
    assert seccomp.numbers(("no_such_call",)) == {}


def test_covered_folders_are_left_out_entry_by_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "autograder/host", "course_lib", "other.py"):
        (tmp_path / "lib" / "site-packages" / name).mkdir(parents=True)
    packages = tmp_path / "lib" / "site-packages"
    mounts = [Bind(str(tmp_path / "lib"), str(tmp_path / "lib")), Cover(str(packages / "autograder"))]
    monkeypatch.setattr(confined, "file_system", lambda masked=(): mounts)
    monkeypatch.setattr(confined, "course", lambda masked=(): [(Path("/srv/course_lib"), "course_lib")])

    assert set(confined.readable()) == {
        *(str(packages / name) for name in ("torch", "course_lib", "other.py")),
        "/srv/course_lib",
    }
    assert set(confined.listable()) == {str(packages), str(tmp_path / "lib")}


def test_masked_files_are_on_no_list() -> None:
    shown, masked = confined.readable(), confined.readable(["course_lib.errors"])

    assert str(view.course_lib()) in shown
    assert str(view.course_lib()) not in masked
    assert str(view.course_lib() / "errors.py") not in masked
    assert str(view.course_lib() / "__init__.py") in masked


def test_the_notes_say_what_is_weaker_on_an_older_kernel() -> None:
    old, new = (" ".join(confined._notes(Level.CONFINED_SAME_USER, abi)) for abi in (3, 7))

    assert "Landlock (ABI 3)" in old
    assert "only seccomp keeps it away" in old
    assert "older than Linux 6.12" in old
    assert "6.12" not in new
    assert "watched, not limited" in new


def test_a_kernel_without_landlock_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "_refuse_the_wrong_user", lambda level: None)

    with pytest.raises(SandboxError, match="This kernel has no Landlock"):
        Confined(Level.CONFINED, abi=0)


@pytest.mark.parametrize(("uid", "level", "sentence"), [(0, 4, "as root; root has level 3"), (1, 3, "needs root")])
def test_the_wrong_user_is_told_the_right_level(
    uid: int, level: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined.os, "geteuid", lambda: uid)

    with pytest.raises(SandboxError, match=sentence):
        Confined(Level(level))


@needs_landlock
@needs_root
def test_in_a_container_that_refuses_namespaces_root_has_level_3() -> None:
    program = (
        f"{REFUSE_NAMESPACES}\nfrom autograder.host.sandbox import describe, open_sandbox\n"
        "print('opened level', int(open_sandbox().level))\nprint(describe())\n"
    )

    said = outside(
        program, "setpriv", f"--bounding-set={CONTAINER_CAPABILITIES}", f"--inh-caps={CONTAINER_CAPABILITIES}"
    )

    assert "opened level 3" in said, said
    assert "This machine does not allow new namespaces" in said
    assert said.count("  refused    ") == len(ATTACKS)
    assert "a file that is removed while it is open escapes" in said  # a container's root may not look


@needs_landlock
@needs_root
def test_an_older_landlock_holds_as_well_with_a_filter_on_signals() -> None:
    program = (
        "from autograder.host.sandbox.confined import Confined\n"
        "from autograder.host.sandbox.levels import Level\n"
        "from autograder.host.sandbox.probe import probe\n"
        "for abi in (1, 3, 5):\n"
        "    print(abi, [f.attack for f in probe(Confined(Level(4), abi=abi)) if not f.contained])\n"
    )

    assert outside(program, *ORDINARY) == "1 []\n3 []\n5 []\n"


STOP_THE_KILLER = """
import os, signal, time
myself = os.getpid()  # a stopped process would only wait for the host's timeout
os.write(3, b'x')
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        for number in set(range(1, 65)) - {9, 19, 32, 33}:
            signal.signal(number, signal.SIG_IGN)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            for pid in range(os.getppid(), os.getppid() + 50):
                if pid not in (myself, os.getpid(), 1):
                    try: os.kill(pid, signal.SIGSTOP)
                    except OSError: pass
os._exit(0)
"""


@needs_landlock
@needs_root
@pytest.mark.parametrize("level", [3, 4])
def test_remaining_processes_of_a_worker_can_neither_escape_nor_stop_their_killer(level: int) -> None:
    """Use the oldest Landlock, where only users and filters control signals."""
    program = (
        "import time\nfrom autograder.host.sandbox import Limits\n"
        "from autograder.host.sandbox.confined import Confined\nfrom autograder.host.sandbox.levels import Level\n"
        f"sandbox = Confined(Level({level}), abi=1)\n"
        f"worker = sandbox._start({STOP_THE_KILLER!r}, Limits(wall_s=10, processes=32))\n"
        "channel = worker.socket.dup()\nworker.socket.recv(1)\nstarted = time.monotonic()\n"
        "ending = worker.end(grace_s=8)\nchannel.settimeout(5)\n"
        "print(ending.reason, ending.exit_code, channel.recv(1), time.monotonic() - started < 8)\n"
    )

    assert outside(program, *(ORDINARY if level == 4 else ())) == "exited 0 b'' True\n"


def test_level_3_and_4_leave_no_way_to_named_sockets(run: Callable[..., Ending]) -> None:
    program = (
        "import socket\n"
        "for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM, socket.SOCK_RAW):\n"
        "    try: socket.socketpair(socket.AF_UNIX, kind); print('pair', end=' ')\n"
        "    except PermissionError: print('refused', end=' ')\n"
        "    try: socket.socket(socket.AF_UNIX, kind); print('socket')\n"
        "    except PermissionError: print('refused')\n"
    )
    sandbox = open_level(3 if os.geteuid() == 0 else 4)

    assert run(sandbox, program, limits=LIMITS).output == "pair refused\n" * 2 + "refused refused\n" * 2
