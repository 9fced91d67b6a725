"""Rounds that are replayed from a CUDA graph, on a simulated GPU: what they time, and what does not pass in them."""

import dataclasses

import pytest
import torch
from torch.nn import functional as F

from autograder.host.artifacts import Artifact
from autograder.host.clock import contest as contests
from autograder.host.clock.contest import Contest, measure
from autograder.host.clock.side import Side
from autograder.host.clock.trial import WrongTimedOutputError
from autograder.host.draw import Draw
from autograder.host.records import SpeedVerdict
from autograder.host.session import AnswerFailedError
from autograder.host.traced import Program, traced
from autograder.protocol import Done, Result
from autograder.worker.rounds import Rounds
from tests import simulated_gpu
from tests.autograder.host.clock.simulated_contest import QUICK, SHAPES, contest_on, honest, noted_replays
from tests.simulated_gpu import Context, SimulatedGpu, SimulatedSession


def test_small_kernels_are_timed_without_their_launches(monkeypatch):
    gpu = SimulatedGpu(kernel_us=10.0)
    record, proven = measure(contest_on(gpu, monkeypatch))

    assert (record.verdict, proven.least) == (SpeedVerdict.PASS, 1.0), record
    assert record.ratio == pytest.approx(2.0, rel=0.05)
    assert record.baseline_us == pytest.approx(2 * gpu.kernel_us, rel=0.1)

    monkeypatch.setattr(Context, "captured", lambda self, work: None)
    assert contest_on(gpu, monkeypatch).trial(QUICK).ratio < 1.0  # a launch by Python takes longer than a kernel


def test_a_round_lasts_long_beside_what_changing_contexts_takes(monkeypatch):
    gpu = SimulatedGpu()
    trial = contest_on(gpu, monkeypatch).trial(QUICK)

    assert min(pair.candidate_us for pair in trial.pairs) >= 20 * simulated_gpu.CHANGE_US
    assert trial.answer_us == pytest.approx(gpu.kernel_us, rel=0.02)


def test_a_graph_that_waits_for_the_gpu_makes_neither_side_replay(monkeypatch):
    captured = Context.captured

    def refused_once(self: Context, work):
        monkeypatch.setattr(Context, "captured", captured)

    monkeypatch.setattr(Context, "captured", refused_once)
    ended: list[int] = []
    close = SimulatedSession.close
    monkeypatch.setattr(SimulatedSession, "close", lambda self: (ended.append(self.pid), close(self))[1])
    trial = contest_on(SimulatedGpu(kernel_us=10.0), monkeypatch).trial(QUICK)
    assert trial.ratio < 1.0
    assert sorted(ended.count(pid) for pid in set(ended)) == [1, 2]  # a failed capture spoils a worker


class Spread(torch.nn.Module):
    """Compute another eighth of the rows in each call, and return what the calls together have computed."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(64, 32))
        self.register_buffer("first", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("eighth", torch.arange(8))

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        zero = torch.mul(torch.select(x.view(-1), 0, 0), 0).to(torch.int64)  # so that nothing is computed by tracing
        first = self.first + zero
        rows = first + self.eighth
        part = F.silu(torch.index_select(x, 0, rows) + bias)
        self.state.copy_(torch.scatter(self.state, 0, rows.unsqueeze(1).expand(8, 32), part))
        self.first.copy_(torch.remainder(first + 8, 64))
        return self.state


def test_a_graph_that_spreads_its_work_over_replays_is_wrong(monkeypatch):
    gpu = SimulatedGpu(kernel_us=2_000.0)  # one problem a round

    def spread() -> Contest:
        of = contest_on(gpu, monkeypatch)
        graph = traced(Program("spread", Spread, SHAPES, 0), Draw(3, "spread"))
        return dataclasses.replace(of, artifact=Artifact(graph.graph, graph.tensors))

    with pytest.raises(WrongTimedOutputError):
        spread().trial(QUICK)
    window = Side.window
    monkeypatch.setattr(Side, "window", lambda self, drawn, **how: window(self, drawn, **{**how, "once": False}))
    assert len(spread().trial(QUICK).pairs) == 9  # eight replays compute all rows


@pytest.mark.parametrize("answer", [None, honest], ids=["graph", "function"])
def test_the_control_has_rounds_like_those_of_the_trial(answer, monkeypatch):
    replays = noted_replays(monkeypatch)
    of = contest_on(SimulatedGpu(), monkeypatch, answer=answer)
    of.trial(QUICK)
    of_trial, replays[:] = max(replays), []
    of.control(9)
    assert max(replays) == of_trial == (contests.REPLAYS if answer is None else 0)


def test_a_round_that_is_too_large_to_capture_is_told_and_not_called_instead(monkeypatch):
    captured = Context.captured

    def only_small(self: Context, work):
        return captured(self, work) if len(work()) == 1 else None

    monkeypatch.setattr(Context, "captured", only_small)
    with pytest.raises(AnswerFailedError, match=r"A round of \d+ calls cannot be captured on this GPU"):
        contest_on(SimulatedGpu(kernel_us=10.0), monkeypatch).trial(QUICK)


def test_without_a_kernel_in_an_empty_round_the_change_of_contexts_would_count_as_work(monkeypatch):
    monkeypatch.setattr(contests, "REPLAYS", 1)
    gpu = SimulatedGpu(kernel_us=50.0)
    assert contest_on(gpu, monkeypatch).trial(QUICK).ratio == pytest.approx(2.0, rel=0.05)

    run = Rounds.run

    def without_a_kernel(self: Rounds, request, tensors):
        if request.skip:
            self.results = self.stand_ins
            return Result(Done())
        return run(self, request, tensors)

    monkeypatch.setattr(Rounds, "run", without_a_kernel)
    assert contest_on(gpu, monkeypatch).trial(QUICK).ratio < 1.95
