"""The judge's path for CUDA on a simulated GPU: right verdicts where the GPU or an answer is wrong on purpose.

Where a test has a repair, it also switches the repair off, and shows the wrong result.
"""

import pytest
import torch
from torch.nn import functional as F

from autograder.host.clock.contest import Contest, contest, measure, problems
from autograder.host.clock.trial import Plan, WrongTimedOutputError
from autograder.host.draw import Draw
from autograder.host.records import CountedCost, SpeedVerdict
from autograder.host.session import AnswerFailedError
from autograder.host.speed import Speed
from autograder.host.traced import Program, TensorSpec
from autograder.protocol import Done, Result
from autograder.worker.rounds import Rounds
from autograder.worker.tensors import NotATensorError
from course_lib.kernels import bias_silu
from course_lib.timing import cuda_clocks
from course_lib.timing.cuda_clocks import CudaEventClock, CudaWallClock
from course_lib.timing.environment import parse_gpu
from course_lib.timing.measurement import open_clock
from tests import simulated_gpu
from tests.autograder.host.clock.simulated_contest import QUICK, SHAPES, contest_on, honest
from tests.simulated_gpu import Context, SimulatedGpu, lying_events


@pytest.mark.parametrize("answer", [None, honest], ids=["graph", "function"])
def test_a_gpu_that_sleeps_at_first_gives_the_true_ratio_and_no_excuse(answer, monkeypatch):
    gpu = SimulatedGpu(awake=False)
    record, proven = measure(contest_on(gpu, monkeypatch, answer=answer))

    assert record.verdict is SpeedVerdict.PASS, record
    assert record.ratio == pytest.approx(2.0, rel=0.05)
    assert (proven.least, record.attempts, record.flags) == (1.0, 1, ())
    assert record.baseline_us == pytest.approx(2 * gpu.kernel_us, rel=0.1)
    rows, bias = 64 * 32 * 4, 32 * 4  # bytes
    costs = (CountedCost(1, 2 * rows + bias), CountedCost(2, 4 * rows + bias)) if answer is None else (None, None)
    assert (record.answer_cost, record.baseline_cost) == costs


def test_one_reading_of_a_sleeping_gpu_would_blame_the_machine():
    assert SimulatedGpu(awake=False).read().problems == ("NVIDIA Simulated runs at 345 MHz of 1980",)


def test_a_slow_gpu_stays_a_problem(monkeypatch):
    gpu = SimulatedGpu(awake=False)
    monkeypatch.setattr(SimulatedGpu, "clock_mhz", 600.0)
    contest_on(gpu, monkeypatch)

    assert problems("cuda", gpu) == ("NVIDIA Simulated runs at 600 MHz of 1980",)


def test_a_right_graph_is_right_although_its_results_are_fetched_while_the_gpu_works(monkeypatch):
    trial = contest_on(SimulatedGpu(), monkeypatch).trial(QUICK)
    assert trial.ratio == pytest.approx(2.0, rel=0.05)

    def without_waiting(self: Rounds, _, __):
        self._deliver()
        return Result(Done())

    monkeypatch.setattr(Rounds, "fetch", without_waiting)
    with pytest.raises(WrongTimedOutputError):
        contest_on(SimulatedGpu(), monkeypatch).trial(QUICK)


def test_a_round_that_does_not_wait_would_measure_launches_only(monkeypatch):
    monkeypatch.setattr(Rounds, "_wait", lambda self: None)
    with pytest.raises(WrongTimedOutputError):
        contest_on(SimulatedGpu(), monkeypatch, answer=honest).trial(QUICK)


def late(context: Context):
    def function(x, bias):
        out = torch.empty_like(x)
        context.later(50_000.0, lambda: out.copy_(F.silu(x + bias)))
        return out

    return function


def beside(context: Context):
    """Work on another stream, without waiting for it."""

    def function(x, bias):
        with context.on("side"):
            return bias_silu(x, bias)

    return function


def beside_and_waiting(context: Context):
    def function(x, bias):
        with context.on("side"):
            out = bias_silu(x, bias)
        context.wait_for("side")
        return out

    return function


def previous(context: Context):
    kept: list[torch.Tensor] = []

    def function(x, bias):
        kept.append(bias_silu(x, bias))
        return kept[0]

    return function


def by_address(context: Context):
    """Keep results by address: on a GPU, the inputs of every round lie at the same one."""
    kept: dict[int, torch.Tensor] = {}

    def function(x, bias):
        return kept.setdefault(x.data_ptr(), bias_silu(x, bias))

    return function


def escaped(context: Context):
    """Replay a captured graph, of whose two launches only the second was captured."""
    total = torch.empty(SHAPES[0].shape)
    captured: list[bool] = []

    def function(x, bias):
        if not captured:
            torch.add(x, bias, out=total)
            captured.append(True)
        return F.silu(total)

    return function


def half(context: Context):
    return lambda x, bias: bias_silu(x.bfloat16(), bias.bfloat16()).float()


def unread(context: Context):
    """Return a subclass of a tensor, which computes when it is read."""

    class Later(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            raise AssertionError("nobody reads it")

    return lambda x, bias: torch.Tensor._make_subclass(Later, x)


def test_a_result_that_is_computed_when_it_is_read_is_no_output(monkeypatch):
    with pytest.raises(NotATensorError):
        contest_on(SimulatedGpu(), monkeypatch, answer=unread).trial(QUICK)


WRONG = (late, beside, previous, by_address, escaped, half)


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: answer.__name__)
def test_an_answer_whose_output_is_not_there_in_time_is_wrong(answer, monkeypatch):
    with pytest.raises(WrongTimedOutputError):
        contest_on(SimulatedGpu(), monkeypatch, answer=answer).trial(QUICK)


def test_work_on_a_second_stream_counts_like_any_other(monkeypatch):
    trial = contest_on(SimulatedGpu(), monkeypatch, answer=beside_and_waiting).trial(QUICK)

    assert trial.ratio == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_events_that_lie_change_no_verdict(factor, monkeypatch):
    gpu = SimulatedGpu()
    context = Context(gpu)
    x = torch.ones(64, 32)

    def clock_of(context: Context) -> CudaEventClock:
        clock = CudaEventClock(torch.device("cuda"), cold=False, cuda=lying_events(gpu, context, factor))
        clock._now_ns = lambda: round(gpu.now_us * 1e3)
        return clock

    def call() -> None:
        with context:
            torch.tanh(x)

    reading = clock_of(context).read(call, 20)
    assert reading.time_us == pytest.approx(factor * 20 * gpu.kernel_us, rel=0.03)
    assert reading.wall_us == pytest.approx(20 * gpu.kernel_us, rel=0.03)

    def measured_by_events(context: Context):
        clock = clock_of(context)
        return lambda x, bias: (clock.read(lambda: None, 1), bias_silu(x, bias))[1]

    assert contest_on(gpu, monkeypatch, answer=honest).trial(QUICK).ratio == pytest.approx(2.0, rel=0.15)
    by_events = contest_on(gpu, monkeypatch, answer=measured_by_events).trial(QUICK)
    assert 1.5 < by_events.ratio < 1.85  # its own measuring costs an answer time


def test_the_forms_of_outputs_are_found_without_memory_or_work():
    rows = 1 << 22  # 64 TiB
    huge = Program("huge", lambda: lambda x, bias: F.silu(x + bias), (TensorSpec((rows, rows)), TensorSpec((rows,))), 0)
    of = contest(Speed(huge, ideal_ratio=2.0), Draw(3, "huge"), None, 60.0, device="cuda", gpu=SimulatedGpu())

    assert [(form.shape, form.dtype) for form in of._forms] == [((rows, rows), torch.float32)]


def test_a_program_on_the_cpu_would_be_free_by_events_and_is_timed_by_the_wall_clock(monkeypatch):
    gpu = SimulatedGpu()
    context = Context(gpu)
    events = CudaEventClock(torch.device("cuda"), cold=False, cuda=lying_events(gpu, context, 1.0))
    events._now_ns = lambda: round(gpu.now_us * 1e3)
    x = torch.ones(3)

    def on_the_cpu() -> None:
        gpu.advance(500.0)  # of the processor
        x.add(1)

    assert events.read(on_the_cpu, 10).time_us < 50.0
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    by_wall = CudaWallClock(torch.device("cuda"), cold=False, cuda=lying_events(gpu, context, 1.0))
    monkeypatch.setattr(cuda_clocks, "cuda_clock", lambda where, name, cache: by_wall if name == "wall" else events)
    clock = open_clock(None, "auto", "auto", (on_the_cpu,))
    clock._now_ns = lambda: round(gpu.now_us * 1e3)
    assert clock.read(on_the_cpu, 10).time_us == pytest.approx(5_000.0)


def test_a_worker_that_dies_with_its_context_costs_its_own_contest_alone(monkeypatch):
    gpu = SimulatedGpu()
    with pytest.raises(AnswerFailedError, match="ended its own process"):
        contest_on(gpu, monkeypatch, answer=honest, dies_after=6).trial(QUICK)

    assert all(block.closed for block in gpu.blocks)
    assert gpu.read().problems == ("2 other processes compute on NVIDIA Simulated",)  # they have ended
    record, _ = measure(contest_on(gpu, monkeypatch))
    assert (record.verdict, record.flags) == (SpeedVerdict.PASS, ())


@pytest.mark.parametrize("in_container", [False, True])
def test_this_process_is_no_neighbour_in_a_container_and_a_neighbour_stays_one(in_container, monkeypatch):
    gpu = SimulatedGpu(in_container=in_container)
    contest_on(gpu, monkeypatch)
    assert problems("cuda", gpu) == ()

    gpu.neighbours.append(4_000)
    assert problems("cuda", gpu) == ("1 other processes compute on NVIDIA Simulated",)
    record, proven = measure(contest_on(gpu, monkeypatch))
    assert (record.verdict, proven.least, proven.most) == (SpeedVerdict.ENVIRONMENT, 0.0, 1.0)  # counted cost decides


def test_a_neighbour_that_comes_while_the_answer_is_timed_leaves_the_points_to_counted_cost(monkeypatch):
    gpu = SimulatedGpu()
    of, take = contest_on(gpu, monkeypatch), Contest.trial

    def joined(self: Contest, plan: Plan):
        gpu.neighbours.append(4_000)
        return take(self, plan)

    monkeypatch.setattr(Contest, "trial", joined)
    record, proven = measure(of)
    assert (record.verdict, proven.least, proven.most) == (SpeedVerdict.ENVIRONMENT, 0.0, 1.0)


def test_without_looking_at_the_namespace_this_process_would_be_a_neighbour(monkeypatch):
    def without_looking(fields, processes, own, *, in_container):
        return parse_gpu(fields, processes, own)

    monkeypatch.setattr(simulated_gpu, "parse_gpu", without_looking)
    gpu = SimulatedGpu(in_container=True)
    contest_on(gpu, monkeypatch)

    assert problems("cuda", gpu) == ("1 other processes compute on NVIDIA Simulated",)
