"""Answers that are modules: what is built crosses by name, the host's weights go in, outputs come back."""

import math

import pytest
import torch
from torch.nn import functional as F

from autograder.host.channel import MalformedAnswerError
from autograder.host.checks.function_checks import agrees
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Case
from autograder.host.kinds.module import FOLDER, Build, ModuleAnswer, read_events
from autograder.host.sandbox import open_sandbox
from autograder.host.session import AnswerFailedError, Session, result_of
from autograder.protocol import Message, RawTensor
from autograder.protocol.requests.loads import LoadAnswer, Part

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, size, *, scale=1.0):
        super().__init__()
        self.dense = nn.Linear(size, size)
        self.register_buffer("scale", torch.tensor(scale))
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(self.dense(x)) * self.scale
"""
STATE = {"dense.weight": torch.randn(3, 3), "dense.bias": torch.randn(3), "scale": torch.tensor(2.0)}
BUILD = Build((3,), {"scale": 2.0})


@pytest.fixture
def answer_of():
    sessions = []

    def made(text, entry_point="Net"):
        load = LoadAnswer("module", entry_point, (Part("answer x", text),))
        sessions.append(Session(open_sandbox(), load, wall_s=20))
        return ModuleAnswer(sessions[-1], sessions[-1])

    yield made
    for session in sessions:
        session.close()


def formula(x):
    weight, bias = (STATE[name].to(x.dtype) for name in ("dense.weight", "dense.bias"))
    return F.linear(x, weight, bias) * 2


def test_what_a_module_holds_crosses_by_name(answer_of):
    found = answer_of(NET).describe(BUILD)
    assert {name: tuple(value.shape) for name, value in found.parameters.items()} == {
        "dense.weight": (3, 3),
        "dense.bias": (3,),
    }
    assert found.buffers == {"scale": torch.tensor(2.0)}
    assert found.files == {}


def test_the_module_runs_with_the_hosts_weights_and_ready_made_checks_apply(answer_of):
    check = agrees(formula, _cases, ("the output",))
    check(answer_of(NET).built(BUILD, STATE), Draw(1, "a"))
    with pytest.raises(CheckFailedError, match="the output is off"):
        check(answer_of(NET.replace("* self.scale", "* 1.9")).built(BUILD, STATE), Draw(1, "a"))


def _cases(draw):
    yield Case((draw.normal(2, 3),))


@pytest.mark.parametrize(
    "kept",
    [
        "self.__dict__.setdefault('kept', self.dense.weight.detach().clone())",
        "KEPT.setdefault(x.shape, self.dense.weight.detach().clone())",
        "KEPT.setdefault(x.shape, self.dense.weight)",
    ],
    ids=["by each module", "by size", "as a reference to the first module's"],
)
def test_a_module_that_keeps_its_first_weights_is_wrong(answer_of, kept):
    text = NET.replace("self.dense(x)", f"nn.functional.linear(x, {kept}, self.dense.bias)") + "\nKEPT = {}\n"
    with pytest.raises(CheckFailedError, match="the output is off"):
        agrees(formula, _cases, ("the output",))(answer_of(text).built(BUILD, STATE), Draw(1, "a"))


def test_gradients_by_inputs_come_before_those_by_parameters(answer_of):
    x, cotangent = torch.randn(4, 3), torch.randn(4, 3)
    built = answer_of(NET).built(BUILD, STATE)
    reply = built.call(Case((x,)), cotangents=[cotangent], wrt=[0], by=["dense.bias"])
    by_input, by_bias = reply.gradients
    torch.testing.assert_close(by_input, 2 * cotangent @ STATE["dense.weight"])
    torch.testing.assert_close(by_bias, 2 * cotangent.sum(0))
    assert reply.mutated == ()


def test_training_mode_is_the_hosts_choice(answer_of):
    case = Case((torch.randn(50, 3),))
    answer = answer_of(NET)
    assert not (answer.built(BUILD, STATE).call(case).outputs[0] == 0).any()
    assert (answer.built(BUILD, STATE, training=True).call(case).outputs[0] == 0).any()


def test_the_module_takes_the_precision_of_the_state(answer_of):
    state = {name: value.double() for name, value in STATE.items()}
    reply = answer_of(NET).built(BUILD, state).call(Case((torch.ones(1, 3, dtype=torch.float64),)))
    assert reply.outputs[0].dtype == torch.float64


def test_a_state_that_does_not_fit_is_said_in_words(answer_of):
    built = answer_of(NET).built(BUILD, {**STATE, "extra": torch.ones(1)})
    with pytest.raises(AnswerFailedError, match="cannot take the weights") as failed:
        built.call(Case((torch.ones(1, 3),)))
    assert "It lacks `extra`." in failed.value.message


def test_of_many_names_that_do_not_fit_some_are_said(answer_of):
    built = answer_of(NET).built(BUILD, {f"layer.{number}": torch.ones(1) for number in range(9)})
    with pytest.raises(AnswerFailedError, match=r"lacks `layer\.0`, `layer\.1`, `layer\.2` and 6 more\. It has also"):
        built.call(Case((torch.ones(1, 3),)))


def test_a_weight_of_another_shape_is_said_in_words(answer_of):
    built = answer_of(NET).built(BUILD, {name: torch.ones(7) for name in STATE})
    with pytest.raises(AnswerFailedError, match="size mismatch for") as failed:
        built.call(Case((torch.ones(1, 3),)))
    assert len(failed.value.message) < 500


def test_what_is_no_module_is_said_in_words(answer_of):
    with pytest.raises(AnswerFailedError, match="made a int; expected an"):
        answer_of("def Net(*a, **k):\n    return 3\n").describe(BUILD)


def test_a_function_may_build_from_tensors_and_leave_files(answer_of):
    text = (
        "import os, torch\n"
        "def train(rows, folder, sizes):\n"
        "    os.makedirs(f'{folder}/a')\n"
        "    with open(f'{folder}/a/log', 'wb') as file:\n"
        "        file.write(b'seen %d' % rows.sum())\n"
        "    with torch.no_grad():\n"
        "        net = torch.nn.Linear(sizes['in'], 1)\n"
        "        net.bias.fill_(rows.sum())\n"
        "    return net\n"
    )
    build = Build((torch.arange(4), FOLDER), {"sizes": {"in": 2}})
    found = answer_of(text, "train").describe(build)
    assert found.files == {"a/log": b"seen 6"}
    assert found.parameters["bias"].item() == 6


def test_a_file_that_is_a_link_does_not_cross(answer_of):
    text = (
        "import os, torch\n"
        "def train(folder):\n"
        "    os.symlink('/etc/passwd', f'{folder}/link')\n"
        "    return torch.nn.Identity()\n"
    )
    assert answer_of(text, "train").describe(Build((FOLDER,))).files == {}


BYTE = RawTensor("uint8", (1,), (1,), b"x")


@pytest.mark.parametrize(
    ("body", "tensors"),
    [
        ({"parameters": [], "buffers": []}, ()),
        ({"parameters": [3], "buffers": [], "files": []}, (BYTE,)),
        ({"parameters": ["a"], "buffers": [], "files": []}, ()),
        ({"parameters": ["a", "a"], "buffers": [], "files": []}, (BYTE, BYTE)),
        ({"parameters": "a", "buffers": [], "files": []}, (BYTE,)),
    ],
)
def test_a_description_of_another_form_is_malformed(body, tensors):
    class Worker:
        def call(self, request, _):
            return result_of(request, Message(body, tensors)), []

    with pytest.raises(MalformedAnswerError):
        ModuleAnswer(Worker(), Worker()).describe(BUILD)


@pytest.fixture
def clean():
    session = Session(open_sandbox(), None, wall_s=30)
    yield session
    session.close()


def written(folder, write):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        write(writer)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_scalars_graph_and_histograms_are_found(tmp_path, clean):
    def write(writer):
        writer.add_graph(torch.nn.Linear(2, 3), torch.ones(1, 2))
        writer.add_histogram("weights", torch.arange(5), 1)
        for step in (1, 3, 2):
            writer.add_scalar("loss", step / 2, step)

    found = read_events(clean, {**written(tmp_path, write), "notes.txt": b"not an event"})
    assert found.scalars == {"loss": ((1, 0.5), (3, 1.5), (2, 1.0))}
    assert found.graph_operators["aten::linear"] == 1
    assert found.histograms == {"weights": 1}


def test_a_value_that_is_not_finite_crosses(tmp_path, clean):
    found = read_events(clean, written(tmp_path, lambda writer: writer.add_scalar("loss", math.inf, 7)))
    ((step, value),) = found.scalars["loss"]
    assert step == 7
    assert math.isnan(value)


def test_a_torn_file_gives_what_came_before(tmp_path, clean):
    files = written(tmp_path, lambda writer: [writer.add_scalar("loss", 1.0, step) for step in range(50)])
    ((name, data),) = files.items()
    found = read_events(clean, {name: data[:-200]})
    assert 0 < len(found.scalars["loss"]) < 50


def test_no_file_and_a_file_of_noise_are_said_in_words(clean):
    with pytest.raises(CheckFailedError, match="no event file"):
        read_events(clean, {"log.txt": b"loss 1"})
    assert read_events(clean, {"events.out.tfevents.1": b"noise" * 100}).scalars == {}
