"""Every mode captures what it can, says who did it, and leaves the program as it was."""

import contextlib
import copy
import logging
import pickle
import random
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.capture import capture
from course_lib.capture.modes import MODES
from course_lib.errors import CaptureError

CAPTURED_BY = {
    "trace": "torch.jit.trace",
    "script": "torch.jit.script",
    "fx": "torch.fx.Tracer",
    "make_fx": "torch.fx.experimental.proxy_tensor.make_fx",
    "dynamo": "torch._dynamo",
    "export": "torch.export.export",
    "aot": "torch._functorch.aot_autograd",
    "lazy": "torch._lazy",
}
FX_MODES = ("fx", "make_fx", "dynamo", "export", "aot")
KNOWS_LINES = ("trace", "script", "fx", "make_fx", "dynamo", "export")


def activate(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x) * 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.dense(x)) * 2


class Remembers(nn.Module):
    """Changes everything that a module can change by being run."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.calls: int = 0
        self.log = [0]
        self.last = None
        self.cache = {"nested": [torch.zeros(2)]}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.log.append(self.calls)
        self.last = x
        self.cache["nested"][0] += 1
        self.cache["new"] = x
        torch.rand(3)
        random.random()
        x.mul_(2)
        return self.norm(x) * (1 if x.sum() > 0 else 2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("as_function", [False, True])
def test_what_was_captured_computes_what_the_program_computes(mode, as_function):
    model, x = Block(), torch.randn(2, 4)
    program = activate if as_function else model
    captured = capture(program, (x,), mode=mode)
    torch.testing.assert_close(captured(x), program(x))
    torch.testing.assert_close(captured.run(x + 1), program(x + 1))
    assert captured.mode == mode
    assert captured.captured_by == CAPTURED_BY[mode]


@pytest.mark.parametrize("mode", MODES)
def test_the_graph_can_be_read(mode):
    captured = capture(Block(), (torch.randn(2, 4),), mode=mode)
    assert "gelu" in captured.code
    assert "gelu" in captured.ir
    if mode in FX_MODES:
        captured.graph_module.graph.lint()
        assert any("gelu" in str(node.target) for node in captured.graph.nodes)
    elif mode == "lazy":
        with pytest.raises(CaptureError, match=r"Mode 'lazy' gave no torch.fx graph.*Read \.code, \.ir"):
            _ = captured.graph
    else:
        assert "gelu" in str(captured.script.inlined_graph)
        assert captured.graph is not None
        with pytest.raises(CaptureError, match="no single graph_module"):
            _ = captured.graph_module


@pytest.mark.parametrize("mode", KNOWS_LINES)
def test_nodes_know_the_line_that_they_came_from(mode):
    captured = capture(Block(), (torch.randn(2, 4),), mode=mode)
    assert "return F.gelu(self.dense(x)) * 2" in {line.text for line in captured.lines.values()}
    assert {line.file for line in captured.lines.values()} == {__file__}


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_printed_or_warned_and_torchscripts_deprecation_is_kept(mode, recwarn, capsys):
    captured = capture(Block(), (torch.randn(2, 4),), mode=mode)
    assert not recwarn.list
    assert capsys.readouterr().out == ""
    deprecated = [said for said in captured.warnings if "deprecated" in said]
    assert bool(deprecated) == (mode in ("trace", "script"))


def test_a_trace_keeps_the_warning_about_what_it_froze():
    captured = capture(lambda x: x * 2 if x.sum() > 0 else x, (torch.ones(2),), mode="trace")
    assert any("TracerWarning" in said and "Python boolean" in said for said in captured.warnings)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fails", [False, True])
def test_program_inputs_and_random_states_are_left_as_they_were(mode, fails):
    model, x = Remembers(), torch.rand(5, 3)
    if fails:
        model.norm.register_forward_hook(lambda module, inputs, output: 1 // 0)
    before, given, log, cached = copy.deepcopy(model.state_dict()), x.clone(), model.log, model.cache["nested"][0]
    torch.manual_seed(5)
    random.seed(5)
    expected = torch.rand(1), random.random()
    torch.manual_seed(5)
    random.seed(5)
    with torch.no_grad():
        with contextlib.suppress(CaptureError):
            capture(model, (x,), mode=mode)
        assert not torch.is_grad_enabled()
    assert (torch.rand(1), random.random()) == expected
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert (model.calls, model.last, model.training) == (0, None, True)
    assert model.log is log
    assert log == [0]
    assert list(model.cache) == ["nested"]
    assert model.cache["nested"][0] is cached
    assert cached.tolist() == [0, 0]
    assert torch.equal(x, given)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "lazy"])
def test_the_result_shares_parameters_with_the_program(mode):
    model, x = Block(), torch.randn(2, 4)
    captured = capture(model, (x,), mode=mode)
    with torch.no_grad():
        model.dense.weight.zero_()
    torch.testing.assert_close(captured(x), model(x))


@pytest.mark.parametrize("mode", MODES)
def test_gradients_flow_through_what_was_captured(mode):
    model, x = Block(), torch.randn(2, 4)
    captured = capture(model, (x.clone().requires_grad_(),), mode=mode)
    given, expected = (x.clone().requires_grad_() for _ in range(2))
    captured(given).sum().backward()
    model(expected).sum().backward()
    torch.testing.assert_close(given.grad, expected.grad)


def test_dynamo_gives_guards_and_each_graph_with_the_reason_of_the_break():
    def branches(x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x)
        if y.sum() > 0:
            return y * 2
        return y - 1

    captured = capture(branches, (torch.ones(2),), mode="dynamo")
    assert list(captured.graphs) == ["graph_0", "graph_1"]
    assert captured.breaks == ("a branch asks for the value of a tensor",)
    assert any("check_tensor(L['x']" in guard and "size=[2]" in guard for guard in captured.guards)
    assert not any("G['torch']" in guard for guard in captured.guards)
    assert torch.equal(captured(-torch.ones(2)), -torch.ones(2))
    with pytest.raises(CaptureError, match=r"2 graphs \(graph_0, graph_1\)"):
        _ = captured.graph_module


def test_what_dynamo_compiled_for_the_caller_stays_compiled():
    from torch._dynamo.utils import counters

    compiled_graphs: list[object] = []

    def backend(graph_module, example_inputs):
        compiled_graphs.append(graph_module)
        return graph_module.forward

    model, x = Block(), torch.randn(2, 4)
    mine = torch.compile(model, backend=backend)
    mine(x)
    before = {name: Counter(counter) for name, counter in counters.items()}
    capture(model, (x,), mode="dynamo")
    assert {name: Counter(counter) for name, counter in counters.items()} == before
    mine(x)
    assert len(compiled_graphs) == 1


def test_export_takes_dynamic_shapes_and_states_the_constraints():
    x = torch.randn(3, 4)
    fixed = capture(Block(), (x,), mode="export")
    assert fixed.guards == ("x.size()[0] == 3", "x.size()[1] == 4")
    batch = torch.export.Dim("batch", min=2, max=9)
    free = capture(Block(), (x,), mode="export", dynamic_shapes=({0: batch},))
    assert any(guard.startswith("2 <= ") and guard.endswith(" <= 9") for guard in free.guards)
    assert free(torch.randn(7, 4)).shape == (7, 3)
    function = capture(torch.relu, (x,), mode="export", dynamic_shapes=({0: batch},))
    assert function(torch.randn(7, 4)).shape == (7, 4)


def test_aot_gives_the_joint_graph_and_its_two_parts():
    captured = capture(Block(), (torch.randn(2, 4),), mode="aot")
    assert list(captured.graphs) == ["joint", "forward", "backward"]
    assert "gelu_backward" in captured.graphs["joint"].code
    assert "gelu_backward" in captured.graphs["backward"].code
    assert "gelu_backward" not in captured.graphs["forward"].code
    assert captured.graph_module is captured.graphs["joint"]
    assert list(capture(torch.relu, (torch.ones(2),), mode="aot").graphs) == ["forward"]


WRONG_CALLS = [
    ({"mode": "trace"}, "got no example_inputs"),
    ({"example_inputs": torch.ones(2), "mode": "trace"}, r"of type Tensor; .* given as \(x,\)"),
    ({"example_inputs": (torch.ones(2),), "mode": "export", "leaf_modules": ("a",)}, 'belong to mode="fx"'),
    ({"example_inputs": (torch.ones(2),), "dynamic_shapes": ({0: 1},)}, 'belong to mode="export"'),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG_CALLS)
def test_a_wrong_call_says_what_was_given_and_what_is_expected(arguments, sentence):
    with pytest.raises(CaptureError, match=sentence):
        capture(torch.relu, **arguments)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in ("script", "fx")])
def test_a_failure_names_mode_program_and_line(mode):
    def fails(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(17, 19)

    with pytest.raises(
        CaptureError, match=rf"^{mode} could not capture fails at test_modes.py:\d+, in fails"
    ) as caught:
        capture(fails, (torch.ones(2),), mode=mode)
    assert caught.value.__cause__ is not None


class WithState(nn.Module):
    """Computes on a parameter and a buffer alone, as is done where weights are put together."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("offset", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.exp(self.weight + self.offset)


@pytest.mark.parametrize("mode", FX_MODES)
def test_a_captured_graph_survives_pickle_and_copy(mode: str) -> None:
    graph = capture(WithState(), (torch.randn(2, 3),), mode=mode).graph_module
    copied = copy.deepcopy(graph)
    for again in (copied, pickle.loads(pickle.dumps(graph)), pickle.loads(pickle.dumps(copied))):
        again.graph.lint()
        assert _calls(again) == _calls(graph)
        assert again.state_dict().keys() == graph.state_dict().keys()


def test_a_graph_read_from_a_file_computes_the_same_with_other_parameters() -> None:
    model, x = WithState(), torch.randn(2, 3)
    again = pickle.loads(pickle.dumps(capture(model).graph_module))
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            tensor.mul_(3)
    again.load_state_dict(model.state_dict())
    torch.testing.assert_close(again(x), model(x))


def _calls(gm: torch.fx.GraphModule) -> Counter[str]:
    return Counter(str(node.target) for node in gm.graph.nodes if node.op.startswith("call"))


def test_lazy_capture_names_the_operators_that_it_did_not_record():
    x = torch.randn(2, 3)
    assert capture(lambda x: torch.relu(x) * 2, (x,), mode="lazy").breaks == ()
    (reason,) = capture(lambda x: F.mish(torch.relu(x)) * 2, (x,), mode="lazy").breaks
    assert reason == "lazy tensors do not record aten::mish: it runs at once, and a new graph begins"


class Held:
    def __init__(self, value: object) -> None:
        self.value = value


def test_lazy_capture_refuses_an_object_whose_tensors_would_stay_lazy():
    for program in (lambda x: Held(x + 1), lambda x: (x, [Held({"deep": Held(x + 1)})])):
        with pytest.raises(CaptureError, match="an object of a class that PyTorch cannot take apart"):
            capture(program, (torch.randn(2, 3),), mode="lazy")
    assert capture(lambda x: (x + 1, Held("no tensor")), (torch.ones(1),), mode="lazy").run(torch.ones(1))[0] == 2


@pytest.mark.parametrize("mode", ["export", "aot", "dynamo"])
def test_a_program_that_fails_gives_one_sentence_and_no_log(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("torch._subclasses.fake_tensor")
    log.addHandler(caplog.handler)  # PyTorch's logs do not reach those of the root
    try:
        with pytest.raises(CaptureError, match=f"^{mode} could not capture Linear"):
            capture(nn.Linear(4, 4), (torch.ones(2, 3),), mode=mode)
        assert [one for one in caplog.records if one.name == log.name] == []
    finally:
        log.removeHandler(caplog.handler)
    assert not log.disabled
