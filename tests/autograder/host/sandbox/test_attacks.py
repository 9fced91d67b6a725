"""Attacks on the machine gain nothing in any tier that isolates, in a cold worker or a forked one.

The files of tests/submissions/hostile/machine run in the worker's place. `hostile/test_machine.py` shows that each of
them succeeds unprotected.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.host.sandbox import Ending, Sandbox
from tests.autograder.host.hostile.catalogue import Attack, attacks
from tests.autograder.host.hostile.machine import TOKEN, TWICE, target
from tests.autograder.host.sandbox.conftest import LIMITS, OWN_TIERS, Run
from tests.drawn import some

# The others are about a session's end and its time; see `test_endings.py`.
ATTACKS = {
    attack.path.stem: attack
    for attack in attacks("machine")
    if attack.path.stem not in {"daemon", "endless_output", "ignores_signals"}
}
TRIALS = [(name, tier) for name in ATTACKS for tier in some(list(OWN_TIERS), 2, name=name)]


@pytest.fixture
def question(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """One thing of each kind to steal or to reach, and an open file that a worker must not inherit."""
    (tmp_path / "inherited").write_text(TOKEN)
    descriptor = os.open(tmp_path / "inherited", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    limits = ("memory_bytes", "processes", "tmp_bytes", "file_bytes")
    with target(tmp_path) as everything:
        yield everything | {name: getattr(LIMITS, name) for name in limits}
    os.close(descriptor)


def program(attack: Attack, question: dict[str, Any]) -> str:
    """The text of a program that makes one attack and prints GAINED if it gets anything."""
    call = f"gained = read_graph({question!r})"
    return f"{attack.path.read_text()}\n{call}\nprint('GAINED', gained, flush=True) if gained else print('nothing')\n"


@pytest.mark.parametrize(("name", "tier"), TRIALS, indirect=["tier"], ids=[f"{name}-{tier}" for name, tier in TRIALS])
def test_an_attack_gains_nothing(name: str, tier: Sandbox, question: dict[str, Any], run: Run) -> None:
    text = program(ATTACKS[name], question)

    for _ in range(2 if name in TWICE else 1):
        ending = run(tier, text)

        assert "GAINED" not in ending.output
        ended_for_it = ending.reason == "out_of_memory" or ending.detail.startswith("wrote ")
        assert "nothing" in ending.output or "Error" in ending.output or ended_for_it
    assert Path(question["gradebook"]).read_text() == "everyone: 3"


@pytest.mark.parametrize("name", ["memory_in_many_processes", "memory_in_shared_pages"])
def test_memory_of_all_processes_together_is_reported_as_out_of_memory(
    name: str, tier: Sandbox, question: dict[str, Any], run: Run
) -> None:
    assert run(tier, program(ATTACKS[name], question)).reason == "out_of_memory"


def test_one_process_that_asks_for_too_much_gets_a_memory_error(tier: Sandbox, run: Run) -> None:
    ending = run(tier, f"try: bytearray({2 * LIMITS.memory_bytes})\nexcept MemoryError: print('refused')")

    assert ending == Ending("exited", 0, "refused\n")


def test_nothing_is_left_for_the_next_worker(tier: Sandbox, question: dict[str, Any], run: Run) -> None:
    text = program(ATTACKS["leaves_traces"], question)

    assert "GAINED" not in run(tier, text).output + run(tier, text).output


def test_a_fork_bomb_leaves_the_neighbour_alone(tier: Sandbox, run: Run) -> None:
    bomb = "import os, signal\ntry:\n while os.fork(): pass\nexcept OSError: os.write(3, b'full')\nsignal.pause()"
    with tier._start(bomb, LIMITS) as bomber:
        bomber.socket.settimeout(LIMITS.wall_s)
        assert bomber.socket.recv(4) == b"full"
        neighbour = run(
            tier, "import os\nfor _ in range(20):\n if os.fork() == 0: os._exit(0)\n os.wait()\nprint('fine')"
        )

    assert neighbour.output == "fine\n"
