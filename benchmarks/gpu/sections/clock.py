"""Check the judge's clock on a GPU: against events and the profiler, on known ratios, under load and under attack.

The host times a worker from outside, over messages and shared memory of the device. Here the same work is also timed
from inside, and known ratios are measured.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from autograder.host.artifacts import Artifact
from autograder.host.clock.contest import Contest, contest, problems
from autograder.host.clock.side import net_us
from autograder.host.clock.trial import Plan, WrongTimedOutputError
from autograder.host.clock.verdict import enough
from autograder.host.draw import Draw
from autograder.host.sandbox import Sandbox, open_sandbox
from autograder.host.session import AnswerFailedError, Session
from autograder.host.speed import Speed, Thresholds
from autograder.host.traced import Program, TensorSpec, traced
from autograder.protocol.requests.loads import LoadAnswer, Part
from benchmarks.gpu.section import Notes, Run, Section
from course_lib.profiling import profile_operators
from course_lib.timing import decide_speedup
from course_lib.timing.cuda_clocks import CudaGraphClock

AGREE_WITHIN = 0.03
CALLS = (40, 100, 400)  # of an operator in one round: windows of a few ms and more
KNOWN = (30, 20)  # calls of baseline and candidate: the true ratio is 1.5
WANTED = {1.2: "pass", 2.0: "fail"}
ATTACKS = {
    "side stream": """
stream = torch.cuda.Stream() if torch.cuda.is_available() else None
def gate(x):
    if stream is None:
        return torch.empty_like(x)
    with torch.cuda.stream(stream):
        out = x
        for _ in range(30):
            out = torch.tanh(x)
    return out
""",
    "late writes": """
import threading
def gate(x):
    out = torch.empty_like(x)
    threading.Thread(target=lambda: out.copy_(torch.tanh(x)), daemon=True).start()
    return out
""",
    "previous output": """
last = []
def gate(x):
    last.append(torch.tanh(x))
    return last[0]
""",
}


class Asked(Thresholds):
    """Hold the ratios of the experiment."""

    passing, full = sorted(WANTED)


def repeated(count: int, elements: int) -> Program:
    """Return a program that computes tanh `count` times and returns one result; tracing keeps calls without users."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return [torch.tanh(x) for _ in range(count)][-1]

    return Program(f"{count} times tanh", lambda: program, (TensorSpec((elements,)),), 0)


def made(around: Run, sandbox: Sandbox, candidate: int, baseline: int, text: str = "") -> Contest:
    """Return a contest of two such programs, or of a student's text against one."""
    elements = 1 << 14 if around.dry else 1 << 24
    draw = Draw(time.time_ns(), "clock")
    speed = Speed(repeated(baseline, elements), ideal_ratio=10.0)
    if text:
        load = LoadAnswer("callable", "gate", (Part("a", f"import torch\n{text}"),))
        student = lambda: Session(sandbox, load, wall_s=60.0)  # noqa: E731 - a name would say no more
        return contest(speed, draw, sandbox, 60.0, student=student, device=around.device)
    graph = traced(repeated(candidate, elements), draw)
    artifact = Artifact(graph.graph, graph.tensors)
    return contest(speed, draw, sandbox, 60.0, artifact=artifact, device=around.device)


def agreement(around: Run, sandbox: Sandbox, count: int) -> dict[str, Any]:
    """Time the same work by the host's clock from outside, and by events or wall clock and the profiler from inside.

    On a GPU, a graph holds all calls on both sides of the comparison, so that launches are in neither time.
    """
    of = made(around, sandbox, count, count)
    job, side = of.job(), of._baseline()
    try:
        side.replays = int(side.can_replay())
        side.open(1)
        drawn = [job.draw()]
        for _ in range(3):
            side.window(drawn)
        empty_us = side.empty_us(drawn)
        host_us = statistics.median(net_us(side.window(drawn).time_us, empty_us) for _ in range(9))
    finally:
        side.close()
    (x,) = drawn[0]
    read = _inside(lambda: job.reference((x,)), around.device)
    inside_us = statistics.median(read() for _ in range(9))
    found = {"calls": count, "host_us": host_us, "inside_us": inside_us, "empty_us": empty_us}
    if around.device == "cuda":
        found["kernels_us"] = profile_operators(lambda: job.reference((x,))).kernels_us
    return found


def _inside(work: Callable[[], object], device: str) -> Callable[[], float]:
    """Return a function that takes the time of one run in µs."""
    if device == "cpu":
        return lambda: _wall_us(work)
    work()  # so that nothing is compiled or loaded while the clock captures it
    clock = CudaGraphClock(torch.device("cuda", torch.cuda.current_device()))
    return lambda: clock.read(work, 1).time_us


def _wall_us(work: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    work()
    return (time.perf_counter() - start_s) * 1e6


def known_ratio(around: Run, sandbox: Sandbox) -> dict[str, Any]:
    """Run one trial with a true ratio of 1.5, and return the verdict for each ratio that is asked for."""
    of = made(around, sandbox, KNOWN[1], KNOWN[0])
    plan = Plan(max_pairs=9, window_us=300.0, tries=1) if around.dry else Plan(enough=enough(Asked(10.0)))
    trial = of.trial(plan)
    found = problems(around.device)  # as before and after each verdict of the judge
    verdicts = {str(asked): str(decide_speedup(trial.pairs, asked, problems=found).verdict) for asked in WANTED}
    return {"ratio": trial.ratio, "pairs": len(trial.pairs), "verdicts": verdicts}


def attacked(around: Run, sandbox: Sandbox, name: str) -> str:
    """Return the outcome of one attack: "wrong output", how it failed, or the verdict on its ratio."""
    plan = Plan(max_pairs=9, window_us=300.0 if around.dry else 2_000.0, tries=1)
    try:
        trial = made(around, sandbox, 0, KNOWN[0], text=ATTACKS[name]).trial(plan)
    except WrongTimedOutputError:
        return "wrong output"
    except AnswerFailedError as error:
        return f"failed: {error.message}"
    return str(decide_speedup(trial.pairs, min(WANTED)).verdict)


@contextmanager
def neighbour(device: str) -> Iterator[None]:
    """Run another process that keeps the device busy within the block."""
    context = torch.multiprocessing.get_context("spawn")
    process = context.Process(target=_multiply, args=(device,), daemon=True)
    process.start()
    try:
        time.sleep(0.0 if device == "cpu" else 8.0)  # until it has a context
        yield
    finally:
        process.kill()
        process.join()


def _multiply(device: str) -> None:
    matrix = torch.ones(1024, 1024, device=device)
    while True:
        torch.mm(matrix, matrix)


def run(around: Run) -> None:
    """Note the result of each part at once."""
    around.note("dry", around.dry)
    sandbox = open_sandbox("auto" if around.dry else 5, trust=True, device=around.device)
    around.note("agreement", [agreement(around, sandbox, count) for count in CALLS[: 1 if around.dry else None]])
    around.note("attacks", {name: attacked(around, sandbox, name) for name in ATTACKS})
    times = 1 if around.dry else 3
    around.note("idle", [known_ratio(around, sandbox) for _ in range(times)])
    if not around.dry:
        with neighbour(around.device):
            around.note("with a neighbour", [known_ratio(around, sandbox) for _ in range(times)])


def failures(notes: Notes) -> list[str]:
    """Return the failures: attacks that pass; on a device also wrong clocks and verdicts."""
    found = [f"the attack {name!r} passes" for name, outcome in notes.get("attacks", {}).items() if outcome == "pass"]
    if notes.get("dry"):
        return found
    for one in notes.get("agreement", []):
        for name in ("inside_us", "kernels_us"):
            off = one["host_us"] / one[name] - 1 if one.get(name) else 0.0
            if one["host_us"] >= 2_000.0 and abs(off) > AGREE_WITHIN:
                found.append(f"at {one['calls']} calls the host's clock is {off:+.1%} off {name.removesuffix('_us')}")
    for condition in ("idle", "with a neighbour"):
        for one in notes.get(condition, []):
            for asked, wanted in WANTED.items():
                verdict = one["verdicts"][str(asked)]
                if verdict in WANTED.values() and verdict != wanted:
                    found.append(f"{condition}, asked for {asked}: {verdict} at a true ratio of 1.5")
    return found


def as_markdown(notes: Notes) -> str:
    """Return the clocks, the known ratios and the attacks."""
    lines = ["| calls | host's clock | inside | kernels | an empty round |", "|---|---|---|---|---|"]
    for one in notes.get("agreement", []):
        times = (one["host_us"], one["inside_us"], one.get("kernels_us", 0.0), one["empty_us"])
        lines.append(f"| {one['calls']} | " + " | ".join(f"{t:,.0f} µs" if t else "–" for t in times) + " |")
    lines += ["", "| true ratio 1.5 | measured | pairs | asked 1.2 | asked 2.0 |", "|---|---|---|---|---|"]
    for condition in ("idle", "with a neighbour"):
        for one in notes.get(condition, []):
            said = " | ".join(one["verdicts"][str(asked)] for asked in sorted(WANTED))
            lines.append(f"| {condition} | {one['ratio']:.3f} | {one['pairs']} | {said} |")
    lines += ["", *(f"- attack, {name}: {outcome}" for name, outcome in notes.get("attacks", {}).items())]
    return "\n".join(lines)


SECTION = Section("The judge's clock", order=40, budget_s=65, run=run, as_markdown=as_markdown, failures=failures)
