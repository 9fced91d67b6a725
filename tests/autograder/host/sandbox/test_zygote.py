"""Workers from the zygote: as isolated as cold ones, separate from each other, and gone without a trace."""

import gc
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from autograder.host.sandbox import Ending, Limits, Sandbox, SandboxError
from autograder.host.sandbox.process import StartError
from autograder.host.sandbox.sandbox import WORKER
from autograder.host.sandbox.zygote import Zygote, ZygotePool, pool
from tests.autograder.host.sandbox.conftest import (
    LIMITS,
    MIB,
    OWN_CONFINED,
    WITH_TORCH,
    FromZygote,
    asked,
    opened,
    serving,
)
from tests.drawn import chance, some

JOBS = 40
ANSWER = "def entry(question):\n    return question"
# Search every written page of a worker's own memory for texts that are passed in two halves, so that the search does
# not find its own arguments.
SEARCH = """
import ctypes, re, socket
channel = socket.socket(fileno=3)
wanted = [line.split() for line in channel.recv(4096).splitlines()]

def holds(content, first, second):
    place = content.find(first)
    while place >= 0:
        after = place + len(first)
        if content[after : after + len(second)] == second:
            return True
        place = content.find(first, after)
    return False

found = []
with open("/proc/self/maps") as maps:
    for line in maps.readlines():
        start, end, rights = re.match(r"(\\w+)-(\\w+) (\\S+)", line).groups()
        if rights.startswith("rw") and "[v" not in line:
            content = ctypes.string_at(int(start, 16), int(end, 16) - int(start, 16))
            found += [place for place, halves in enumerate(wanted) if holds(content, *halves)]
            del content
print(sorted(set(found)))
"""


def token_of(request: pytest.FixtureRequest, name: str) -> str:
    """Return a text that is nowhere but in this test."""
    return chance(f"{name} of {request.node.nodeid}").randbytes(24).hex()


@pytest.fixture(params=[1, 2, OWN_CONFINED], ids="level {}".format)
def forking(request: pytest.FixtureRequest) -> Iterator[FromZygote]:
    """A level whose workers are all forked from one zygote of the test's own."""
    made = FromZygote(opened(request.param))
    assert made.zygotes is not None
    yield made
    made.zygotes.close()


def in_halves(text: bytes) -> bytes:
    return text[: len(text) // 2] + b" " + text[len(text) // 2 :]


def test_an_answer_is_loaded_and_called_in_a_forked_worker(sandbox: Sandbox) -> None:
    for _ in range(2):
        worker, channel = serving(sandbox)
        reply = asked(channel, ANSWER, [1, "two"])

        assert reply.body["value"] == [1, "two"]
        assert worker.end(grace_s=10) == Ending("exited", 0, "")
    assert sandbox.zygotes is not None, sandbox.notes


def test_a_mask_holds_for_its_own_job_only(tier: Sandbox, run: Callable[..., Ending]) -> None:
    program = "import os, sys\nprint(os.path.exists(sys.path[0] + '/course_lib/errors.py'))"

    assert run(tier, program, masked=("course_lib.errors",)).output == "False\n"
    assert run(tier, program).output == "True\n"


def test_no_secret_of_another_job_is_in_a_workers_memory(forking: FromZygote, request: pytest.FixtureRequest) -> None:
    earlier, own = (token_of(request, name).encode() for name in ("earlier", "own"))
    with forking._start("import os; os.read(3, 4096); print('read')", WITH_TORCH) as first:
        first.socket.sendall(earlier)
        assert first.end(grace_s=20).output == "read\n"
    with forking._start(SEARCH + f"held = {own.decode()!r}\n", WITH_TORCH) as second:
        second.socket.sendall(b"\n".join(map(in_halves, (earlier, own))))
        found = second.end(grace_s=30).output

    assert found == "[1]\n"  # the search works: it finds this job's own program


def test_orders_of_one_job_do_not_reach_the_next(forking: FromZygote, request: pytest.FixtureRequest) -> None:
    """The zygote passes orders on as a descriptor, and neither reads nor stores them."""
    token = token_of(request, "token")
    with forking._start(f"# {token}", WITH_TORCH) as first:
        first.end(grace_s=20)
    with forking._start(SEARCH, WITH_TORCH) as second:
        second.socket.sendall(in_halves(token.encode()))

        assert second.end(grace_s=30).output == "[]\n"


def test_a_worker_sees_neither_keeper_nor_zygote_nor_their_descriptors(forking: FromZygote) -> None:
    program = (
        "import os\n"
        "print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1])\n"
        "near = {os.getppid(), *range(max(2, os.getpid() - 40), os.getpid())} - {os.getpid()}\n"
        "reached = []\n"
        "for pid in near:\n"
        "    for file in ('environ', 'mem', 'maps', 'fd/3'):\n"
        "        try: open(f'/proc/{pid}/{file}', 'rb').read(1); reached.append((pid, file))\n"
        "        except OSError: pass\n"
        "    try: os.kill(pid, 0); reached.append((pid, 'signal'))\n"
        "    except OSError: pass\n"
        "print(reached)"
    )
    with forking._start(program, LIMITS) as worker:
        output = worker.end(grace_s=10).output

    assert output.startswith("[0, 1, 2, 3]\n")
    reached = output.splitlines()[1]
    if forking.level < 3:
        # The worker can name the first process of the namespace, which only waits, but cannot read it.
        reached = reached.replace("(1, 'signal')", "")
    assert reached == "[]", output


def test_two_zygotes_differ_in_memory_layout_and_one_is_replaced_in_time(forking: FromZygote) -> None:
    where = "import ctypes; print(ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value)"
    forking.zygotes = ZygotePool(lambda: forking._sandbox._zygote(preload=False), jobs=2)
    try:
        layouts = []
        for _ in range(4):
            with forking._start(where, LIMITS) as worker:
                layouts.append(worker.end(grace_s=10).output)
    finally:
        forking.zygotes.close()

    assert layouts[0] == layouts[1] != layouts[2] == layouts[3]


def held_here() -> tuple[int, int, set[str]]:
    """Return how many descriptors and children this process has, and its workers' folders."""
    gc.collect()
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    children = 0
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # a thread that has just ended has none
            children += len((task / "children").read_text().split())
    folders = {str(place) for place in Path(tempfile.gettempdir()).glob(f"autograder-worker-{os.getpid()}-*")}
    return descriptors, children, folders


def test_nothing_is_left_after_many_jobs(forking: FromZygote) -> None:
    messy = (
        "import os\nif os.fork() == 0: os.setsid(); os.fork(); os.read(3, 1)\nopen(os.environ['TMPDIR'] + '/x', 'w')"
    )
    started = []

    def start() -> Zygote:
        started.append(forking._sandbox._zygote(preload=False))
        return started[-1]

    forking.zygotes = ZygotePool(start, jobs=JOBS * 9 // 20)
    with forking._start("", LIMITS) as first:  # starts the zygote
        first.end(grace_s=10)
    before = held_here()
    for _ in range(JOBS):
        with forking._start(messy, LIMITS) as worker:
            assert worker.end(grace_s=10).reason == "exited"
    *replaced, current = started
    for zygote in replaced:  # on the way, twice
        zygote.process.wait(10)
    # Another thread of this process may be starting one more of each just now; a leak would be two or more.
    for _ in range(50):
        descriptors, children, folders = held_here()
        if children <= before[1] + 1 and len(folders - before[2]) <= 1:
            break
        time.sleep(0.1)
    assert len(replaced) == 2
    assert descriptors <= before[0] + 1
    assert children <= before[1] + 1
    assert len(folders - before[2]) <= 1
    below = Path(f"/proc/{current.process.pid}/task/{current.process.pid}/children").read_text().split()
    assert len(below) <= 1  # in bubblewrap, the zygote itself


def test_a_zygote_that_dies_is_replaced(forking: FromZygote, run: Callable[..., Ending]) -> None:
    assert run(forking, "print(1)").output == "1\n"
    assert forking.zygotes is not None
    current = forking.zygotes._current
    assert current is not None
    os.kill(current.process.pid, signal.SIGKILL)
    current.process.wait()

    assert run(forking, "print(2)").output == "2\n"


def test_without_a_zygote_workers_are_isolated_no_less(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*, preload: bool) -> pool.Zygote:
        raise StartError("it is broken")

    monkeypatch.setattr(sandbox, "cold_because", "")
    monkeypatch.setattr(sandbox, "zygotes", ZygotePool(lambda: broken(preload=True)))
    cold = []
    monkeypatch.setattr(sandbox, "_start", lambda *arguments: cold.append(arguments))

    sandbox.start(limits=LIMITS, masked=("course_lib.errors",))

    assert cold == [(WORKER, LIMITS, ("course_lib.errors",))]
    assert sandbox.notes[-1].startswith("workers are started cold, which takes longer: A worker could not be forked")
    assert "it is broken" in sandbox.notes[-1]


def test_a_step_of_confinement_that_fails_starts_nothing(forking: FromZygote, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "autograder.host.sandbox.bubblewrap" if forking.level < 3 else "autograder.host.sandbox.confined"
    monkeypatch.setattr(f"{module}.seccomp.program", lambda **_: b"\xff" * 8)  # no filter that a kernel takes

    with pytest.raises(SandboxError, match=r"could not be forked .*Invalid argument"):
        forking._start("print('ran')", LIMITS)


def test_forked_hosts_share_their_parents_zygote_and_each_gets_its_own_answers(
    forking: FromZygote, run: Callable[..., Ending], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(forking, "print('first')").output == "first\n"
    monkeypatch.setattr(forking.zygotes, "_start", lambda: pytest.fail("another zygote was started"))

    def each_is_answered(number: int) -> bool:
        return [run(forking, f"print({number})").output for _ in range(4)] == [f"{number}\n"] * 4

    children = [_forked_host(partial(each_is_answered, number)) for number in (1, 2)]
    assert each_is_answered(3)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert run(forking, "print('last')").output == "last\n"


def test_a_forked_host_whose_zygote_has_died_starts_its_own(forking: FromZygote, run: Callable[..., Ending]) -> None:
    assert run(forking, "print(1)").output == "1\n"
    assert forking.zygotes is not None
    assert forking.zygotes._current is not None
    forking.zygotes._current.process.kill()
    forking.zygotes._current.process.wait()
    child = _forked_host(lambda: run(forking, "print(2)").output == "2\n")

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _forked_host(holds: Callable[[], bool]) -> int:
    """Fork a host that ends with status 0 if its check is true."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if holds() else 2
        finally:
            os._exit(code)
    return child


def test_nothing_of_a_graded_answer_or_its_requests_reaches_the_next_worker(
    sandbox: Sandbox, request: pytest.FixtureRequest
) -> None:
    """The real zygote, with torch; the host's numbers for requests and a student's text both cross the channel."""
    assert sandbox.zygotes is not None, sandbox.notes
    token = token_of(request, "token")
    worker, channel = serving(sandbox)
    asked(channel, f"{ANSWER}\n# {token}", token)
    neighbour = sandbox._fork(sandbox.zygotes, SEARCH, WITH_TORCH)  # while the first one still holds it
    worker.end(grace_s=10)
    later = sandbox._fork(sandbox.zygotes, SEARCH, WITH_TORCH)

    for searching in (neighbour, later):
        searching.socket.sendall(in_halves(token.encode()))
        assert searching.end(grace_s=40) == Ending("exited", 0, "[]\n")


HOSTILE = (
    "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "import os, signal\nfor pid in range(1, 99):\n    try: os.kill(pid, signal.SIGKILL)\n    except OSError: pass",
    "import os, signal\nos.kill(os.getppid(), signal.SIGINT); os.kill(-1, signal.SIGSTOP)",
    "while True: print('x' * 100_000)",
)


def test_honest_jobs_are_unharmed_by_hostile_ones_of_the_same_zygote(forking: FromZygote) -> None:
    for hostile in HOSTILE:
        with (
            forking._start(hostile, Limits(wall_s=1.0, memory_bytes=128 * MIB)) as bad,
            forking._start("print(sum(range(1000)))", LIMITS) as good,
        ):
            assert good.end(grace_s=20) == Ending("exited", 0, "499500\n")
            bad.end(grace_s=5)
    assert forking.zygotes is not None
    current = forking.zygotes._current
    assert current is not None
    assert current.jobs == 2 * len(HOSTILE)  # the same one, alive to the end
    assert current.process.poll() is None


IMPORTED = """
import sys
print(*(m in sys.modules for m in ("torch._dynamo", "torch._inductor.compile_fx", "lightning")))
print([m for m in sys.modules if m.startswith("course_lib")])
"""


@pytest.mark.parametrize("level", some([1, OWN_CONFINED], 1, name="levels of zygotes for graphs"))
def test_workers_for_graphs_find_the_compiler_imported_and_nothing_of_the_library(level: int) -> None:
    sandbox = opened(level)
    zygotes = ZygotePool(lambda: sandbox._zygote(preload=True))
    try:
        first = sandbox._fork(zygotes, IMPORTED, WITH_TORCH).end(grace_s=20)
        zygotes.want("graphs")
        second = sandbox._fork(zygotes, IMPORTED, WITH_TORCH).end(grace_s=20)
        zygotes.want("graphs", "lowering")
        third = sandbox._fork(zygotes, IMPORTED, WITH_TORCH).end(grace_s=20)
        zygotes.want("lightning")
        fourth = sandbox._fork(zygotes, IMPORTED, WITH_TORCH).end(grace_s=20)
    finally:
        zygotes.close()

    imported = ["False False False", "True False False", "True True False", "True True True"]
    assert [e.output for e in (first, second, third, fourth)] == [f"{each}\n[]\n" for each in imported]


def test_a_worker_runs_its_exit_functions_but_not_those_of_torch() -> None:
    sandbox = opened(5)
    program = """
import atexit, sys, weakref
class Answer: pass
sys.answer = Answer()  # lives to the end
weakref.finalize(sys.answer, print, "finalized")
atexit.register(print, "exited")
print(sum(each.atexit for each in weakref.finalize._registry))
"""
    assert sandbox.zygotes is not None
    ending = sandbox._fork(sandbox.zygotes, program, WITH_TORCH).end(grace_s=20)
    assert ending == Ending("exited", 0, "1\nexited\nfinalized\n")


def test_level_5_forks_as_well_and_masks_modules() -> None:
    plain = opened(5)
    program = "import sys\nprint('torch' in sys.modules)\nimport course_lib.models"
    assert plain.zygotes is not None

    ending = plain._fork(plain.zygotes, program, WITH_TORCH, ("course_lib.models",)).end(grace_s=20)

    assert ending.output.endswith("True\n")
    assert "No module named 'course_lib.models'" in ending.output
