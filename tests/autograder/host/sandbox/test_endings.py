"""How workers end, by themselves or killed, and that they leave nothing behind."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.host.sandbox import Ending, Limits, Sandbox
from tests.autograder.host.sandbox.conftest import LIMITS, MIB, OWN_TIERS, by_name

ROOT = Path(__file__).parents[4]
IGNORE_SIGNALS = """
import contextlib, signal
for number in range(1, 65):
    with contextlib.suppress(OSError, ValueError): signal.signal(number, signal.SIG_IGN)
print("ready", flush=True)
while True: pass
"""
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for _ in range(60):
            os.write(CHANNEL, b"alive")
            time.sleep(0.05)
    os._exit(0)
os.wait()
"""


@pytest.fixture(params=[*OWN_TIERS, "level 5", "level 5 forked"])
def any_tier(request: pytest.FixtureRequest) -> Sandbox:
    return by_name(request.param)


@pytest.mark.parametrize(
    ("program", "reason", "exit_code"),
    [
        ("pass", "exited", 0),
        ("import sys; sys.exit(3)", "exited", 3),
        ("import os; os._exit(0)", "exited", 0),
        ("raise ValueError('mine')", "exited", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "killed", -signal.SIGSEGV),
    ],
)
def test_a_worker_that_ends_by_itself_reports_how(
    program: str, reason: str, exit_code: int, any_tier: Sandbox, run: Callable[..., Ending]
) -> None:
    ending = run(any_tier, program)

    assert (ending.reason, ending.exit_code) == (reason, exit_code)


def test_the_channel_is_descriptor_3_and_the_only_one_beside_the_standard_ones(
    any_tier: Sandbox, run: Callable[..., Ending]
) -> None:
    program = "import os; print([n for n in range(64) if os.path.exists(f'/proc/self/fd/{n}')])"

    assert run(any_tier, program).output == "[0, 1, 2, 3]\n"


def test_bytes_cross_the_channel_in_both_directions(any_tier: Sandbox) -> None:
    program = "import socket; c = socket.socket(fileno=3); c.sendall(c.recv(5)[::-1])"

    with any_tier._start(program, LIMITS) as worker:
        worker.socket.sendall(b"hello")
        assert worker.socket.recv(5) == b"olleh"
        assert worker.end().exit_code == 0


def test_output_of_both_streams_is_kept_up_to_its_limit(any_tier: Sandbox, run: Callable[..., Ending]) -> None:
    program = "import sys; print('out', flush=True); print('error', file=sys.stderr, flush=True); print('x' * 5000)"
    limits = Limits(wall_s=10, output_bytes=1000)

    ending = run(any_tier, program, limits=limits)

    assert ending.output == "out\nerror\n" + "x" * 990
    assert ending.reason == "exited"


def test_the_wall_clock_ends_a_worker_without_a_waiting_host(any_tier: Sandbox) -> None:
    with any_tier._start("import time; time.sleep(60)", Limits(wall_s=0.3)) as worker:
        worker.socket.settimeout(5)
        assert worker.socket.recv(1) == b""
        assert worker.end().reason == "timed_out"


def test_a_loop_that_ignores_signals_survives_them_unprotected() -> None:
    with subprocess.Popen([sys.executable, "-c", IGNORE_SIGNALS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU):
            process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.kill()


def test_a_loop_that_ignores_signals_ends_with_its_time(any_tier: Sandbox, run: Callable[..., Ending]) -> None:
    ending = run(any_tier, IGNORE_SIGNALS, limits=Limits(wall_s=0.6))

    assert (ending.reason, ending.exit_code, ending.output) == ("timed_out", None, "ready\n")


def test_killing_is_immediate_and_may_be_repeated_from_any_thread(any_tier: Sandbox) -> None:
    with any_tier._start("import time; print('on', flush=True); time.sleep(60)", LIMITS) as worker:
        threads = [threading.Thread(target=worker.kill) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        before = time.monotonic()
        ending = worker.end(grace_s=5)
        worker.kill()

        assert ending.reason == "killed"
        assert ending is worker.end()
        assert time.monotonic() - before < 2


def test_a_worker_outlives_the_thread_that_started_it(any_tier: Sandbox) -> None:
    workers = []
    thread = threading.Thread(
        target=lambda: workers.append(any_tier._start("import os; os.write(3, os.read(3, 1))", LIMITS))
    )
    thread.start()
    thread.join()

    with workers[0] as worker:
        time.sleep(0.1)
        worker.socket.sendall(b"x")
        assert worker.socket.recv(1) == b"x"


def test_workers_run_side_by_side(any_tier: Sandbox) -> None:
    program = "import os; print(os.getuid(), flush=True); os.write(3, b'x'); os.read(3, 1)"
    workers = [any_tier._start(program, LIMITS) for _ in range(4)]
    for worker in workers:
        worker.socket.settimeout(LIMITS.wall_s)
        assert worker.socket.recv(1) == b"x"
    endings = [worker.end() for worker in workers]

    assert {ending.reason for ending in endings} == {"exited"}
    if os.geteuid() == 0 and any_tier.level < 5:
        assert len({ending.output for ending in endings}) == 4  # a user each


def test_a_daemon_outlives_an_unprotected_process() -> None:
    read, write = os.pipe()
    program = DAEMON.replace("CHANNEL", str(write))
    subprocess.run([sys.executable, "-c", program], pass_fds=(write,), check=True)
    os.close(write)
    os.read(read, 1 << 16)

    assert os.read(read, 5) == b"alive"
    while os.read(read, 1 << 16):
        pass
    os.close(read)


def test_no_daemon_outlives_a_worker(tier: Sandbox) -> None:
    with tier._start(DAEMON.replace("CHANNEL", "3"), LIMITS) as worker:
        channel = worker.socket.dup()
        assert worker.end(grace_s=5).reason == "exited"
    channel.settimeout(5)
    while channel.recv(1 << 16):  # what was written before
        pass
    channel.close()


def test_endless_output_is_cut_and_ends_the_worker(any_tier: Sandbox, run: Callable[..., Ending]) -> None:
    program = "import sys\nfor _ in range(1024): sys.stdout.write('x' * (1 << 20))"
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    ending = run(any_tier, program)

    assert (ending.reason, ending.detail) == ("killed", "printed more than 32 MB")
    assert len(ending.output) == LIMITS.output_bytes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 16 * 1024


def test_much_output_below_the_bound_is_read_and_dropped(any_tier: Sandbox, run: Callable[..., Ending]) -> None:
    ending = run(any_tier, f"print('x' * {20 * MIB})")

    assert (ending.reason, len(ending.output)) == ("exited", LIMITS.output_bytes)


COLD = "sandbox._start(program, Limits())"
FORKED = "sandbox._fork(ZygotePool(lambda: sandbox._zygote(preload=False)), program, Limits())"


@pytest.mark.parametrize("name", OWN_TIERS)
def test_nothing_stays_when_the_host_is_killed(name: str) -> None:
    host = (
        f"import sys, time; sys.path.insert(0, {str(ROOT)!r})\n"
        "from autograder.host.sandbox import Limits, open_sandbox, selection\n"
        "from autograder.host.sandbox.zygote import ZygotePool\n"
        "selection.probe = lambda *_, **__: ()\n"  # it was probed here
        f"sandbox = open_sandbox({by_name(name).level:d})\n"
        "program = 'import os, time; os.write(3, bytes(1)); time.sleep(60)'\n"
        f"worker = {FORKED if name.endswith('forked') else COLD}\n"
        "worker.socket.recv(1); print(worker._enclosure._first_pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", host], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = Path("/proc", process.stdout.readline().strip())
        assert first.exists()
        process.kill()
        process.wait()
        deadline = time.monotonic() + 5
        while first.exists() and time.monotonic() < deadline:
            time.sleep(0.01)

        assert not first.exists()
