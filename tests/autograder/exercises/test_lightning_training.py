"""What people likely think of Lightning is named, and the runs that the exercises ask for see what they should."""

from itertools import pairwise

import lightning
import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

from autograder.exercises.lightning_training.counter_callback import counters_of_the_loop
from autograder.exercises.programs import lightning_runs
from tests.autograder.exercises.judged import judged, said
from tests.drawn import third

IN_PLACE = "part.compile(backend=backend, dynamic=True)"
COMPILED = "part.forward = torch.compile(part.forward, backend=backend, dynamic=True)"
# exercise, words of a message, change of the reference, whether a hidden check says it
NAMED = [
    ("16_port_trainer", "Draw the weights after", ("torch.manual_seed(run['seed'])\n            ", ""), False),
    ("16_port_trainer", "AdamW with lr=0.01", ("lr=0.01", "lr=0.001"), False),
    ("16_port_trainer", "as batch_size", ("batch_size=int((batch[1] >= 0).sum())", "batch_size=1"), True),
    (
        "16_port_trainer",
        "without on_epoch",
        ("('loss/train', loss)", "('loss/train', loss, on_step=False, on_epoch=True)"),
        False,
    ),
    ("16_compile_task", "captures nothing", (COMPILED, IN_PLACE), True),
    ("16_compile_task", "size of a batch be dynamic", (", dynamic=True", ""), True),
    (
        "16_compile_task",
        "could not be loaded",
        (COMPILED, "setattr(task, 'model', torch.compile(part, backend=backend))"),
        False,
    ),
    (
        "16_port_trainer",
        "seed again before the loss",
        ("torch.manual_seed(run['seed'] + self.global_step)", "pass"),
        True,
    ),
    ("16_compile_task", "the given backend got 0 graphs", ("backend=backend", "backend='eager'"), False),
    (
        "16_compile_task",
        "compile_task returned NoneType",
        ("return task", "return None"),
        False,
    ),
    (
        "16_counter_callback",
        "another task or batch",
        (
            "on_train_batch_end(self, trainer, task, outputs, batch, batch_idx)",
            "on_train_batch_start(self, trainer, task, batch, batch_idx)",
        ),
        False,
    ),
    ("16_counter_callback", "Return an empty list", (" if on else []", ""), False),
    ("16_counter_callback", "count once for it", ("step == self.seen or ", ""), True),
    (
        "16_counter_callback",
        "as .item() does",
        ("self.seen = step", "self.seen = step + outputs['loss'].item() * 0"),
        True,
    ),
]
TRIED = third(NAMED, name="mistakes in lightning_training")  # the others in other runs


@pytest.mark.parametrize("mistake", TRIED, ids=[f"{n[0]}: {n[1]}" for n in TRIED])
def test_a_likely_mistake_is_named(mistake):
    exercise_id, words, change, hidden = mistake
    assert words in said(exercise_id, change, hidden=hidden)


@pytest.mark.parametrize("module", [nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4))], ids=["Linear", "Sequential"])
def test_compiling_a_class_of_torch_in_place_captures_nothing(module):
    torch._dynamo.reset()
    graphs = CompileCounter()
    module.compile(backend=graphs)
    module(torch.ones(2, 4))
    assert graphs.frame_count == 0
    module.forward = torch.compile(module.forward, backend=graphs)
    module(torch.ones(2, 4))
    assert graphs.frame_count == 1


def test_logging_in_a_compiled_step_breaks_the_graph_or_fails():
    def fitted(task):
        torch._dynamo.reset()
        graphs = CompileCounter()
        task.training_step = torch.compile(task.training_step, backend=graphs)
        batches = lightning_runs._loader([lightning_runs.rows(i, 4) for i in range(2)])
        lightning_runs._trainer(logger=False).fit(task, batches)
        return graphs.frame_count

    with pytest.raises(torch._dynamo.exc.InternalTorchDynamoError, match="__dict__"):
        fitted(lightning_runs._task("a model", 0))
    disabled = lightning_runs._task("a model", 0)
    disabled.log = torch.compiler.disable(disabled.log)
    torch._dynamo.utils.counters.clear()
    assert fitted(disabled) == 1
    assert any("disable" in reason for reason in torch._dynamo.utils.counters["graph_break"])


def test_the_plain_loop_is_no_port():
    answer = "def port(run):\n    return [0.0] * 20\n"
    record = judged("16_port_trainer", answer, hidden=False)
    assert (record.points, "expected a LightningModule" in str(record)) == (0, True)


RUN = {"seed": 5, "every": 2, "on": True, "logs": False, "hollow": False}


@pytest.mark.parametrize(("accumulate", "epochs"), [(1, 1), (3, 2)])
def test_the_counters_of_the_plain_loop_are_those_that_lightning_trains(accumulate, epochs):
    found = []

    class Keeps(lightning.Callback):
        def on_train_batch_end(self, trainer, task, outputs, batch, batch_idx):
            found.append((trainer.global_step, lightning_runs.counters(task.model)["C1"]))

    lengths = {"steps": 4, "accumulate": accumulate, "epochs": epochs}
    lightning_runs.count_in_turn(lambda *_: [Keeps()], [{**RUN, **lengths}])
    expected = [each["C1"] for each in counters_of_the_loop(seed=RUN["seed"], **lengths)]
    assert len(found) == 4 * accumulate * epochs
    assert all(abs(value - expected[step]) < 1e-3 for step, value in found)
    assert min(abs(a - b) for a, b in pairwise(expected)) > 0.05


def test_what_is_counted_has_the_number_of_the_call_in_it_and_tells_another_batch():
    found = []

    class Counts(lightning.Callback):
        def __init__(self, count):
            self.count = count

        def on_train_batch_end(self, trainer, task, outputs, batch, batch_idx):
            right = lightning_runs.counters(task.model)["C1"]
            found.append([self.count(task, each)["C1"] - right for each in (batch, batch + 1)])

    run = {**RUN, "steps": 2, "accumulate": 1, "epochs": 1}
    lightning_runs.count_in_turn(lambda count, *_: [Counts(count)], [run, run])
    call, others = lightning_runs.CALL, lightning_runs.OTHERS
    assert found == [[pytest.approx((2 * n + 1) * call), pytest.approx((2 * n + 2) * call + others)] for n in range(4)]


READS = ["tolist()", "numpy()", "item()", "cpu()", "to('cpu')", "to(device=torch.device('cpu:0'))", "__float__()"]


@pytest.mark.parametrize("read", [*READS, "__bool__()", "__format__('.2f')"])
def test_no_number_can_be_read_where_tensors_have_none(read):
    class Reads(lightning.Callback):
        def on_train_batch_end(self, trainer, task, outputs, batch, batch_idx):
            eval(f"loss.{read}", {"loss": outputs["loss"], "torch": torch})

    run = {**RUN, "hollow": True, "steps": 2, "accumulate": 2, "epochs": 1}
    (reads,) = lightning_runs.count_in_turn(lambda *_: [Reads()], [run])["runs"]
    (fine,) = lightning_runs.count_in_turn(lambda *_: [lightning.Callback()], [run])["runs"]
    assert reads["read"]
    assert "read" not in fine


def test_a_graph_counts_only_where_dynamo_made_it():
    weight = nn.Parameter(torch.ones(2))
    backend, kept = lightning_runs._backend(2.0, {weight.data_ptr(): "part.weight"})
    module = torch.fx.symbolic_trace(nn.Linear(2, 2))
    backend(module, [])
    assert kept["graphs"] == []
    torch._dynamo.reset()
    result = torch.compile(lambda x: x + weight, backend=backend)(torch.ones(2))
    assert (len(kept["graphs"]), result.tolist()) == (1, [4.0, 4.0])
    assert sorted(kept["graphs"][0]["inputs"]) == ["hidden", "part.weight"]


def test_calls_that_dynamo_did_not_capture_are_told_from_those_it_did():
    lightning_runs._forget()
    compiled = torch.compile(lambda x: x.sin() + 1, backend="eager")
    compiled(torch.ones(2))
    assert not lightning_runs._foreign({"calls": 2})
    assert lightning_runs._foreign({"calls": 3}) == {"given": 3, "captured": 2}
