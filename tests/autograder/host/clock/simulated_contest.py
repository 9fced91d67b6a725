"""A contest of separate operators and a fused one, whose workers are on a simulated GPU."""

from torch.nn import functional as F

from autograder.host.artifacts import Artifact
from autograder.host.clock.contest import Contest, contest
from autograder.host.clock.trial import Plan
from autograder.host.draw import Draw
from autograder.host.speed import Speed
from autograder.host.traced import Program, TensorSpec, traced
from autograder.worker.rounds import Rounds
from course_lib.kernels import bias_silu
from tests.simulated_gpu import Context, SimulatedGpu, SimulatedSession, put_in_place

SHAPES = (TensorSpec((64, 32)), TensorSpec((32,)))
SEPARATE = Program("`F.silu(x + bias)`", lambda: lambda x, bias: F.silu(x + bias), SHAPES, 0)
FUSED = Program("`bias_silu(x, bias)`", lambda: lambda x, bias: bias_silu(x, bias), SHAPES, 0)
SPEED = Speed(SEPARATE, ideal_ratio=2.0)
QUICK = Plan(max_pairs=9, tries=1)


def contest_on(gpu: SimulatedGpu, monkeypatch, *, answer=None, dies_after: int = -1) -> Contest:
    """Return a contest whose workers are on the simulated GPU: a graph, or a student's function.

    `answer` takes the worker's context and returns the function. The answer's worker dies after so many requests.
    """

    def student() -> SimulatedSession:
        made = SimulatedSession(gpu, None, answer=answer)
        made.left = dies_after if dies_after >= 0 else None
        return made

    put_in_place(gpu, monkeypatch)
    draw = Draw(3, "simulated")
    if answer is not None:
        return contest(SPEED, draw, None, 60.0, student=student, device="cuda", gpu=gpu)
    graph = traced(FUSED, draw)
    return contest(SPEED, draw, None, 60.0, artifact=Artifact(graph.graph, graph.tensors), device="cuda", gpu=gpu)


def noted_replays(monkeypatch) -> list[int]:
    """Return the list to which each round adds how often it is replayed; 0 calls the function, or computes nothing."""
    run, replays = Rounds.run, []

    def noted(self: Rounds, request, tensors):
        replays.append(request.replays)
        return run(self, request, tensors)

    monkeypatch.setattr(Rounds, "run", noted)
    return replays


def honest(context: Context):
    return lambda x, bias: bias_silu(x, bias)
