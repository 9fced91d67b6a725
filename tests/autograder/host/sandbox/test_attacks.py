"""Every attack succeeds against an unprotected process, and fails in every tier that isolates."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.host.sandbox import Ending, Sandbox
from tests import skips
from tests.autograder.host.sandbox.conftest import LIMITS, OWN_TIERS
from tests.drawn import chance, some

ROOT = Path(__file__).parents[4]
TOKEN = chance("token of the host").randbytes(32).hex()

# attack to its arguments; a name in braces stands for what the fixture `prepared` makes
ATTACKS: dict[str, tuple[object, ...]] = {
    "read_the_gradebook": ("{gradebook}",),
    "change_the_gradebook": ("{gradebook}",),
    "connect_over_tcp": ("{port}",),
    "connect_to_an_abstract_socket": ("{abstract}",),
    "connect_to_a_socket_file": ("{socket_file}",),
    "kill_the_parent": (),
    "find_in_processes": ("py", "test"),
    "find_in_environments": (TOKEN,),
    "fork_bomb": (LIMITS.processes,),
    "start_threads": (LIMITS.processes,),
    "memory_in_one_process": (LIMITS.memory_bytes,),
    "memory_in_many_processes": (LIMITS.memory_bytes,),
    "memory_in_files_without_a_name": (LIMITS.memory_bytes,),
    "memory_in_shared_pages": (LIMITS.memory_bytes,),
    "fill_the_disk": (LIMITS.tmp_bytes,),
    "write_one_large_file": (LIMITS.file_bytes,),
    "fill_the_device_directory": (),
    "use_inherited_descriptors": (TOKEN,),
    "import_the_judge": (str(ROOT),),
    "mount_something": (),
    "read_another_process": (TOKEN,),
}
NEEDS_ROOT = {"fill_the_device_directory"}
TRIALS = [(name, tier) for name in ATTACKS for tier in some(list(OWN_TIERS), 3, name=name)]


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """One thing of each kind to steal or to reach."""
    gradebook = tmp_path / "gradebook.db"
    gradebook.write_text("everyone: 3")
    gradebook.chmod(0o600)
    monkeypatch.setenv("TOKEN_OF_THE_HOST", TOKEN)
    inherited = tmp_path / "inherited"
    inherited.write_text(TOKEN)
    descriptor = os.open(inherited, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    abstract = f"autograder-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as hidden:
        hidden.bind("\0" + abstract)
        hidden.listen()
        with socket.socket(socket.AF_UNIX) as visible:
            socket_file = str(tmp_path / "socket")
            visible.bind(socket_file)
            visible.listen()
            yield {
                "{gradebook}": str(gradebook),
                "{port}": tcp.getsockname()[1],
                "{abstract}": abstract,
                "{socket_file}": socket_file,
            }
    os.close(descriptor)


@pytest.fixture(params=ATTACKS)
def attack(
    request: pytest.FixtureRequest, prepared: dict[str, object], attack_program: Callable[..., str]
) -> tuple[str, str]:
    """Name and program of an attack."""
    arguments = [prepared.get(str(argument), argument) for argument in ATTACKS[request.param]]
    return request.param, attack_program(request.param, *arguments)


def test_an_attack_succeeds_unprotected(attack: tuple[str, str], run_unprotected: Callable[..., str]) -> None:
    name, program = attack
    if name in NEEDS_ROOT and os.geteuid() != 0:
        pytest.skip(skips.ROOT)

    assert "GAINED" in run_unprotected(program, secret=TOKEN)


@pytest.mark.parametrize(("attack", "tier"), TRIALS, indirect=True, ids=[f"{name}-{tier}" for name, tier in TRIALS])
def test_an_attack_gains_nothing(attack: tuple[str, str], tier: Sandbox, run: Callable[..., Ending]) -> None:
    _, program = attack

    ending = run(tier, program)

    assert "GAINED" not in ending.output
    ended_for_it = ending.reason == "out_of_memory" or ending.detail.startswith("wrote ")
    assert "nothing" in ending.output or "Error" in ending.output or ended_for_it


@pytest.mark.parametrize("attack", ["memory_in_many_processes", "memory_in_shared_pages"])
def test_memory_of_all_processes_together_is_reported_as_out_of_memory(
    attack: str, tier: Sandbox, run: Callable[..., Ending], attack_program: Callable[..., str]
) -> None:
    assert run(tier, attack_program(attack, LIMITS.memory_bytes)).reason == "out_of_memory"


def test_one_process_that_asks_for_too_much_gets_a_memory_error(tier: Sandbox, run: Callable[..., Ending]) -> None:
    ending = run(tier, f"try: bytearray({2 * LIMITS.memory_bytes})\nexcept MemoryError: print('refused')")

    assert ending == Ending("exited", 0, "refused\n")


def test_nothing_is_left_for_the_next_worker(
    tier: Sandbox,
    run: Callable[..., Ending],
    run_unprotected: Callable[..., str],
    attack_program: Callable[..., str],
) -> None:
    program = attack_program("leave_a_residue", f"residue-{os.getpid()}-{tier.level}")

    assert "GAINED" in run_unprotected(program) + run_unprotected(program)
    assert "GAINED" not in run(tier, program).output + run(tier, program).output


def test_a_fork_bomb_leaves_the_neighbour_alone(tier: Sandbox, run: Callable[..., Ending]) -> None:
    bomb = "import os, signal\ntry:\n while os.fork(): pass\nexcept OSError: os.write(3, b'full')\nsignal.pause()"
    with tier._start(bomb, LIMITS) as bomber:
        bomber.socket.settimeout(LIMITS.wall_s)
        assert bomber.socket.recv(4) == b"full"
        neighbour = run(
            tier, "import os\nfor _ in range(20):\n if os.fork() == 0: os._exit(0)\n os.wait()\nprint('fine')"
        )

    assert neighbour.output == "fine\n"
