"""What people likely think of Lightning is named, and the runs that the exercises ask for see what they should."""

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

from autograder.exercises.lightning_training.counter_callback import Counting, countings, moments_of_the_loop
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
    ("16_compile_task", "batch be dynamic", (", dynamic=True", ""), False),
    (
        "16_compile_task",
        "could not be loaded",
        (COMPILED, "[setattr(task, n, torch.compile(m, backend=backend)) for n, m in list(task.named_children())]"),
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
    ("16_counter_callback", "return an empty list then", (" if on else []", ""), False),
    ("16_counter_callback", "count once for it", ("step == self.seen or ", ""), True),
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


RUN = {"every": 2, "on": True, "logs": True}


def counts_with(count, due=lambda step: True):
    """A callback that counts after the steps for which `due` holds, and keeps the results."""
    import lightning  # here, since every process of a run collects all tests, and this takes seconds

    class Counts(lightning.Callback):
        def __init__(self):
            self.found = []

        def on_train_batch_end(self, trainer, task, outputs, batch, batch_idx):
            if due(trainer.global_step):
                self.found.append(count(task, batch))

    return Counts()


@pytest.mark.parametrize(("accumulate", "epochs", "before"), [(1, 1, 0), (1, 1, 1), (3, 2, 0)])
def test_the_calls_of_a_training_are_found_by_the_plain_loop(accumulate, epochs, before):
    made = []

    def answer(count, every, on):
        made.append(counts_with(count, lambda step: step in (1, 4) and len(made) > before))
        return [made[-1]]

    lengths = {"steps": 4, "accumulate": accumulate, "epochs": epochs}
    runs = [{**RUN, **lengths}] * (before + 1)
    lightning_runs.count_in_turn(answer, runs, seed=5)
    calls = countings(made[-1].found, moments_of_the_loop(5, before, **lengths))
    assert sorted({call.step for call in calls}) == [1, 4]
    assert [call.right for call in calls].count(True) == 2
    assert len(calls) == (2 if accumulate == 1 else 6)


def test_a_call_that_writes_nothing_shows_in_later_counters():
    def last(due):
        made = []
        run = {**RUN, "steps": 4, "accumulate": 1, "epochs": 1}
        answer = lambda count, *_: made.append(counts_with(count, due)) or made[-1:]  # noqa: E731
        lightning_runs.count_in_turn(answer, [run], seed=5)
        return made[0].found[-1:]

    def moments():
        return moments_of_the_loop(5, 0, 4, 1, 1)

    assert [call.step for call in countings(last(lambda step: step == 4), moments())] == [4]
    assert countings(last(lambda step: step in (1, 4)), moments()) == [None]


def test_a_training_before_shows_whether_it_counted():
    made = []
    run = {**RUN, "steps": 3, "accumulate": 1, "epochs": 1}
    answer = lambda count, every, on: made.append(counts_with(count, lambda step: step == 2)) or made[-1:]  # noqa: E731
    lightning_runs.count_in_turn(answer, [{**run, "on": False}, run], seed=5)
    assert countings(made[-1].found, moments_of_the_loop(5, 1, 3, 1, 1)) == [None]


def test_results_that_are_equal_to_their_neighbours_are_one_call():
    made = []
    run = {**RUN, "steps": 3, "accumulate": 1, "epochs": 1}
    answer = lambda count, *_: made.append(counts_with(count, lambda step: step == 2)) or made[-1:]  # noqa: E731
    lightning_runs.count_in_turn(answer, [run], seed=5)
    (call, same) = countings(made[0].found * 2, moments_of_the_loop(5, 0, 3, 1, 1))
    assert call == same == Counting(2, right=True)
