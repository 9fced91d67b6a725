"""Measure what isolation costs: from the request for a worker to its first answer, by level, cold and from the zygote.

    python -m benchmarks.grading.sandbox_overhead            # levels of this machine, about a minute each
    python -m benchmarks.grading.sandbox_overhead --quick    # a few workers of each kind

A submission here is the smallest there is: start, load an answer, call it once, end. Times are wall time on a machine
that may be busy, so the best is printed beside the median, and processor time, which a busy machine changes less. The
latter is not known of cold workers, since bubblewrap does not wait for its grandchildren.
"""

import argparse
import os
import platform
import re
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from autograder.host.channel import Channel
from autograder.host.sandbox import Level, Limits, Sandbox, SandboxError, WorkerProcess, open_sandbox
from autograder.host.sandbox.sandbox import WORKER
from autograder.protocol import FrameKind, serialise
from autograder.protocol.contract import request_body
from autograder.protocol.requests.answers import Ask
from autograder.protocol.requests.loads import LoadAnswer, Part

LIMITS = Limits(wall_s=120.0)
LOAD = LoadAnswer("value", "entry", (Part("answer", "def entry(question):\n    return question"),))
PATIENCE_S = 120.0
PATH = re.compile(r"/[\w./-]+")  # paths of this machine are useless to readers of the table
TARGET_MS, TARGET_A_MINUTE = 150, 400


@dataclass
class Series:
    """Hold the times of submissions that were all started in the same way."""

    level: int
    way: str
    first_call_s: list[float] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0

    def line(self) -> str:
        """Return the series as a row of the table."""
        ordered = sorted(self.first_call_s)
        p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
        columns = (
            *(f"{self.level:>5}  {self.way:<7}", f"{len(ordered):>4}", f"{1000 * ordered[0]:>8.0f}"),
            *(f"{1000 * statistics.median(ordered):>8.0f}", f"{1000 * p95:>8.0f}"),
            *(
                f"{60 / statistics.mean(self.whole_s):>10.0f}",
                f"{1000 * self.cpu_s / len(ordered):>8.0f}" if self.cpu_s else f"{'-':>8}",
            ),
        )
        return " ".join(columns)


HEADER = "level  way        n  best ms   median      p95   a minute   CPU ms"


def submit(start: Callable[[], WorkerProcess]) -> tuple[float, float]:
    """Run the smallest submission; return the seconds to its first answer and to its end."""
    began = time.perf_counter()
    with start() as worker:
        deadline = time.monotonic() + PATIENCE_S
        channel = Channel(worker.socket)
        channel.wait_ready(deadline)
        channel.request(FrameKind.LOAD, serialise(request_body(LOAD)), deadline_s=deadline)
        reply = channel.request(FrameKind.CALL, serialise(request_body(Ask(42))), deadline_s=deadline)
        answered = time.perf_counter()
        assert reply.body["value"] == 42, "a worker that echoes"
        ending = worker.end(grace_s=PATIENCE_S)
    assert ending.exit_code == 0, ending
    return answered - began, time.perf_counter() - began


def measure(sandbox: Sandbox, way: str, count: int) -> Series:
    """Submit `count` times; the times exclude the start of a zygote."""
    series = Series(sandbox.level, way)
    zygotes = sandbox.zygotes
    if way == "zygote":
        assert zygotes is not None, sandbox.notes
        zygotes.warm()
    before_s = _cpu_s(sandbox)
    for _ in range(count):
        start = (lambda: sandbox.start(limits=LIMITS)) if way == "zygote" else (lambda: sandbox._start(WORKER, LIMITS))
        first_s, whole_s = submit(start)
        series.first_call_s.append(first_s)
        series.whole_s.append(whole_s)
    if way == "zygote":
        series.cpu_s = _cpu_s(sandbox) - before_s
    return series


def machine() -> str:
    """Return one line that describes the machine."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, Linux {platform.release()}, user {os.geteuid()}, load {load}"


def _cpu_s(sandbox: Sandbox) -> float:
    """Return the processor time of this process, of its ended children, and of a running zygote with its children."""
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(usage.ru_utime + usage.ru_stime for usage in own)
    current = sandbox.zygotes._current if sandbox.zygotes else None
    for process in _tree(current.process.pid) if current else ():
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def _tree(process: int) -> Iterator[int]:
    yield process
    for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
        yield from _tree(int(child))


def main() -> None:
    """Measure every level that this machine has and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few workers of each kind")
    quick = parser.parse_args().quick
    print(f"Measured on {machine()}")
    print(HEADER)
    best: Series | None = None
    for level in list(Level)[:-1]:
        try:
            sandbox = open_sandbox(level)
        except SandboxError as error:
            print(f"{level:>5}  not on this machine: {PATH.sub('…', str(error))}")
            continue
        for way, count in (("cold", 2 if quick else 8), ("zygote", 6 if quick else 80)):
            if way == "zygote" and sandbox.zygotes is None:
                print(f"{level:>5}  {sandbox.notes[-1]}")
                continue
            series = measure(sandbox, way, count)
            print(series.line(), flush=True)
            best = best or (series if way == "zygote" else None)
    if best is not None:
        print(
            f"Target: {TARGET_MS} ms median and {TARGET_A_MINUTE} submissions a minute, on 2 cores without other load."
        )


if __name__ == "__main__":
    main()
