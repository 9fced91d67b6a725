"""The graph that is timed: made from the program by rewriting, and from no value of its weights or inputs."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from autograder.exercises import all_exercises, find
from autograder.host.artifacts import Artifact
from autograder.host.clock import contest as contests
from autograder.host.clock import timed_graph as checked
from autograder.host.clock import trial as trials
from autograder.host.clock.contest import TWIN_EVERY, TWIN_STRETCH, contest
from autograder.host.clock.memory import HostMemory
from autograder.host.clock.side import Window
from autograder.host.clock.timed_graph import timed_graph
from autograder.host.clock.trial import Job, Plan, WrongTimedOutputError
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import as_tuple
from autograder.host.kinds.schedule import ScheduleAnswer
from autograder.host.sandbox import open_sandbox
from autograder.host.session import Session
from autograder.host.speed import Speed
from autograder.host.traced import Program, TensorSpec, draw_inputs, traced
from autograder.protocol.requests.loads import LoadAnswer, Part
from course_lib.graph import to_data
from tests.autograder.host.hostile.catalogue import HOSTILE, text_of
from tests.autograder.host.timed_exercise import SPEED, contest_of
from tests.drawn import some

FINISHED = HOSTILE / "06_schedule_encoder" / "finished_graph_by_size.py"
NARROWER = {  # what a kernel computes with, although fp32 is asked
    "bfloat16": lambda t: t.bfloat16().float(),
    "float16": lambda t: t.half().float(),
    "TF32": lambda t: (t.view(torch.int32) & ~0x1FFF).view(torch.float32),
}


class TwoLayers(nn.Module):
    """Two linear layers, which are one for whoever multiplies their weights beforehand."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16, bias=False), nn.Linear(16, 8, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def multiplied(answer, source):
    """What an answer does that computes with the weights of the timed program before the clock starts."""
    one = nn.Linear(8, 8, bias=False)
    one.weight = nn.Parameter(source.tensors["second.weight"] @ source.tensors["first.weight"])
    graph_module = torch.fx.symbolic_trace(nn.Sequential(one))
    graph, tensors = to_data(graph_module)
    return Artifact(graph, dict(tensors))


def test_what_an_answer_computed_from_weights_beforehand_is_wrong_when_it_is_timed(monkeypatch):
    speed = Speed(Program("`TwoLayers`", TwoLayers, (TensorSpec((64, 8)),), 0), 2.0, graph_of=multiplied)

    def error() -> float:
        draw = Draw(5, "layers")
        source = traced(speed.program, draw)
        made = timed_graph(None, speed, source, draw)
        (x,) = draw_inputs(speed.program.inputs, draw)
        return float((x @ made.tensors["0.weight"].T - source.reference(x)).detach().abs().max())

    assert error() > 0.1
    monkeypatch.setattr(checked, "_redraw_alike", lambda program, draw: None)
    assert error() < 1e-4


def test_redrawn_weights_have_the_magnitude_that_the_program_was_given():
    draw = Draw(5, "layers")
    source = traced(Program("`TwoLayers`", TwoLayers, (TensorSpec((64, 8)),), 0), draw)
    with torch.no_grad():
        source.module.get_parameter("first.weight").mul_(0.01)
    before = {name: tensor.clone() for name, tensor in source.tensors.items()}
    checked._redraw_alike(source, draw)

    for name, tensor in source.tensors.items():
        assert not torch.equal(tensor, before[name])
        assert float(tensor.std()) == pytest.approx(float(before[name].std()), rel=0.5)


def test_some_timed_inputs_are_twins_of_those_before_in_all_but_a_stretch():
    job = contest_of("", None).job()
    drawn = [job.draw() for _ in range(60)]
    differing = [int((x != before).sum()) for (before, _), (x, _) in itertools.pairwise(drawn)]
    twins = [count for count in differing if count <= drawn[0][0].numel() // TWIN_STRETCH]

    assert len(drawn) / TWIN_EVERY / 3 < len(twins) < len(drawn) / 2
    assert min(twins) > 0


LEAKED = """
import torch
from torch.nn import functional as F

generator, known = torch.Generator().manual_seed({seed}), {{}}
for _ in range({count}):
    x, bias = torch.empty(512, 768).normal_(generator=generator), torch.empty(768).normal_(generator=generator)
    known[{key}] = F.silu(x + bias)


def gate(x, bias):
    return known.get({key}, x)
"""
SAMPLE = "tuple(x[::200, ::300].reshape(-1).tolist())"
QUICK = Plan(max_pairs=9, window_us=1.0, tries=1)


@pytest.mark.parametrize("twins", [False, True])
def test_an_answer_that_knows_inputs_by_a_sample_has_to_compute_nothing_without_twins(monkeypatch, twins):
    """The seed is handed to the answer here, since it has results ready for no input otherwise."""
    monkeypatch.setattr(contests, "TWIN_EVERY", 3 if twins else 10**9)
    seed = Draw(7, "gate")
    traced(SPEED.program, seed)
    of = contest_of(LEAKED.format(seed=seed.integer(0, 2**63 - 1), count=45, key=SAMPLE), open_sandbox())
    if twins:
        with pytest.raises(WrongTimedOutputError, match="fresh inputs"):
            of.trial(QUICK)
    else:
        assert len(of.trial(QUICK).pairs) == 9


@pytest.mark.parametrize("compared", [True, False])
def test_a_timed_graph_that_writes_into_its_inputs_is_wrong(monkeypatch, compared):
    graph, tensors = to_data(torch.fx.symbolic_trace(lambda x, bias: F.silu(x.add_(bias))))
    of = contest(SPEED, Draw(7, "gate"), open_sandbox(), 60.0, artifact=Artifact(graph, dict(tensors)))
    if compared:
        with pytest.raises(WrongTimedOutputError, match="wrote into its inputs"):
            of.trial(Plan(max_pairs=9, tries=1))
    else:
        monkeypatch.setattr(HostMemory, "mutated", lambda memory: False)
        assert len(of.trial(Plan(max_pairs=9, tries=1)).pairs) == 9


def test_a_finished_graph_is_timed_for_a_schedule_only_if_no_longer_model_is_asked_for():
    speed, draw, sandbox = find("06_schedule_encoder").speed, Draw(7, "schedule"), open_sandbox()
    load = LoadAnswer("schedule", "schedule_encoder", (Part("answer", text_of(FINISHED)),))
    answer = ScheduleAnswer(Session(sandbox, load), Session(sandbox, None))
    found = timed_graph(answer, replace(speed, longer=None), traced(speed.program, draw), draw)

    assert found.count("torch.ops.course_lib.bias_dropout_residual_layer_norm") == 2
    with pytest.raises(CheckFailedError, match="calls other operators"):
        timed_graph(answer, speed, traced(speed.program, draw), draw)
    answer.student.close()
    answer.clean.close()


CASES = [(e, name) for e in all_exercises() if find(e).speed for name in NARROWER]


@pytest.mark.parametrize(("exercise_id", "name"), some(CASES, 5, name="narrower dtypes"))
def test_an_answer_as_exact_as_a_narrower_dtype_is_wrong_at_the_dtype_of_its_inputs(exercise_id, name):
    draw, speed = Draw(9, "narrow"), find(exercise_id).speed
    source = traced(speed.program, draw)
    with torch.no_grad():
        for parameter in source.module.parameters():
            parameter.mul_(parameter.shape[-1] ** -0.5)
    problem = draw_inputs(checked._with_fewer_rows(source), draw)
    for each in problem:
        if speed.drawn is not None:
            speed.drawn(each)
    job = Job(lambda: problem, lambda inputs: tuple(t.detach() for t in as_tuple(source.reference(*inputs))))

    trials._require_all_right([problem], Window(1.0, (job.reference(problem),), False, False), job)
    narrowed = job.reference(tuple(map(NARROWER[name], problem)))
    with pytest.raises(WrongTimedOutputError, match="fresh inputs"):
        trials._require_all_right([problem], Window(1.0, (narrowed,), False, False), job)
