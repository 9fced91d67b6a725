"""Launches that came as data run again on other inputs; memory, sizes and seeds are not believed."""

import copy

import pytest
import torch
from torch.nn import functional as F

from autograder.exercises.launch_overhead.replay_by_shape import agree
from autograder.exercises.programs import launch_machine, replayed_runs
from autograder.exercises.programs.launch_machine import (
    MOST_EVENTS,
    MOST_ITEMS,
    MOST_NUMBERS,
    LaunchMachine,
    require_replays,
)
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import CheckFailedError
from course_lib import launches
from course_lib.launches.launch_record import LaunchRecorder
from tests.autograder.exercises.judged import reference

STEPS = ["times", "scale", "sin", "plus"]


def calls_of(count, shape=(2, 3), draws=None):
    return [{"shapes": [shape, shape], "seed": seed, "draws": draws} for seed in range(count)]


def tensors_of(calls, first_seed=100):
    pairs = (replayed_runs.inputs({**call, "seed": first_seed + place}) for place, call in enumerate(calls))
    return [tensor for pair in pairs for tensor in pair]


def report_of(answer, calls, steps=STEPS, **options):
    with torch.random.fork_rng(devices=[]):
        return replayed_runs.call_in_turn(answer, steps, calls, **options)


def replaying(text=None):
    names = {**vars(launches), "torch": torch}
    exec(text or reference("15_replay_by_shape"), names)
    return names["replayed"]


def on_static_tensors(function):
    static = [torch.zeros(2, 3), torch.zeros(2, 3)]
    return lambda *inputs: function(*(kept.copy_(new) for kept, new in zip(static, inputs, strict=True)))


def recorded(function, *given):
    """Return the report of one call of a function."""
    recorder = replayed_runs.Recorder()
    numbers = recorder.given(given)
    recorder.call(function, *given)
    return {"given": numbers, "events": recorder.events, "sizes": recorder.sizes}


def run_on(report, *given):
    """Return the result of the only call on other inputs."""
    (call,) = LaunchMachine(report, given).calls
    return call.output


def test_a_replay_runs_on_inputs_that_the_answer_never_saw_with_the_number_of_its_capture():
    calls = calls_of(3)
    given = tensors_of(calls)
    machine = LaunchMachine(report_of(replaying(), calls), given)
    captured = replayed_runs.program(STEPS, [replayed_runs.number_of(0)])
    for call, first, second in zip(machine.calls, given[::2], given[1::2], strict=True):
        assert torch.allclose(call.output, captured(first, second))
        assert torch.equal(machine.later(call), call.output)
    require_replays(machine.calls[1:], len(STEPS))


@pytest.mark.parametrize(
    "answer", [lambda function: function, on_static_tensors], ids=["eager", "eager on static tensors"]
)
def test_eager_calls_are_launches_beside_replays(answer):
    calls = calls_of(4)
    machine = LaunchMachine(report_of(answer, calls), tensors_of(calls))
    with pytest.raises(CheckFailedError, match=f"starts {len(STEPS)} launches beside replays"):
        require_replays(machine.calls[1:], len(STEPS))


@pytest.mark.parametrize(
    ("text", "again"),
    [
        (
            reference(
                "15_replay_by_shape",
                ("if shapes not in known:", "if True:"),
                ("        function(*static)\n        torch", "        known or function(*static)\n        torch"),
            ),
            0,
        ),
        (reference("15_replay_by_shape", ("result = function(*static)", "result = static[0].sin()")), 1),
    ],
    ids=["captured in each call", "another graph"],
)
def test_calls_replay_one_capture_of_the_function(text, again):
    calls = calls_of(4)
    machine = LaunchMachine(report_of(replaying(text), calls), tensors_of(calls))
    with pytest.raises(CheckFailedError, match=f"replay {again} launches of the same captures"):
        require_replays(machine.calls[2:], len(STEPS))


def test_a_replay_starts_the_launches_of_the_first_one_whatever_a_later_report_says():
    calls = calls_of(3)
    report = report_of(replaying(), calls)
    first, *later = (event for event in report["events"] if "replay" in event)
    assert not any("steps" in event for event in later)
    right = LaunchMachine(report, given := tensors_of(calls)).calls[2].output
    later[1]["steps"] = first["steps"][:1]
    assert torch.equal(LaunchMachine(report, given).calls[2].output, right)


def test_replays_are_bounded():
    calls = calls_of(1)
    report = report_of(replaying(), calls)
    report["events"] += [event for event in report["events"] if "replay" in event] * (MOST_EVENTS // len(STEPS))
    assert len(report["events"]) < MOST_EVENTS
    with pytest.raises(MalformedAnswerError):
        LaunchMachine(report, tensors_of(calls))


def test_a_replay_before_the_capture_changes_no_later_one():
    early = "graph = Graph()\n        with contextlib.suppress(RuntimeError):\n            graph.replay()\n        "
    text = "import contextlib\n" + reference("15_replay_by_shape", ("with (graph := Graph()):", f"{early}with graph:"))
    calls = calls_of(3)
    machine = LaunchMachine(report_of(replaying(text), calls), tensors_of(calls))
    require_replays(machine.calls[1:], len(STEPS))


def test_what_is_captured_ran_before_whatever_the_simulator_of_the_answer_refuses(monkeypatch):
    text = reference(
        "15_replay_by_shape", ("            function(*static)\n        torch", "            pass\n        torch")
    )
    monkeypatch.setattr(launches.replayed_graph, "_needs_no_library", lambda func: True)
    calls = calls_of(3)
    with pytest.raises(CheckFailedError, match=r"aten\.add\.Tensor ran for the first time during a capture"):
        LaunchMachine(report_of(replaying(text), calls), tensors_of(calls))


LOSSES = {
    "mse_loss": lambda found: F.mse_loss(found, torch.zeros_like(found)),
    "dot": lambda found: torch.dot(found.flatten(), found.flatten()) / found.numel(),
    "abs": lambda found: found.abs().pow(2).mean(),
    "norm": lambda found: found.norm() ** 2 / found.numel(),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("optimizer", replayed_runs.OPTIMIZERS)
def test_losses_and_optimizers_of_many_tensors_can_be_started_again(loss, optimizer):
    run = {"seed": 1, "steps": 1, "optimizer": optimizer, "dropout": 0.5, "running": True}
    model, steps, batches = replayed_runs.made(run)
    steps.param_groups[0]["foreach"] = True

    def step(batch):
        loss(model(batch)).backward()
        steps.step()
        return batch + 0

    assert torch.equal(run_on(recorded(step, batches[0]), torch.ones(5, 6)), torch.ones(5, 6))


def test_no_number_is_read_by_writing_down_a_replay():
    report = report_of(replaying(), calls_of(3))
    assert not any(event.get("operator") == replayed_runs.READ for event in report["events"])


def test_a_result_is_new_memory_whatever_its_number_is():
    report = recorded(lambda x, y: x + y, torch.ones(2), torch.ones(2))
    (launch,) = (event for event in report["events"] if "operator" in event)
    assert torch.equal(run_on(report, torch.ones(2), torch.ones(2)), torch.tensor([2.0, 2.0]))
    launch["results"][0]["buffer"] = report["given"][0]
    with pytest.raises(MalformedAnswerError):
        run_on(report, torch.ones(2), torch.ones(2))


def test_two_inputs_do_not_share_a_number():
    report = recorded(lambda x, y: x + y, torch.ones(2), torch.ones(2))
    report["given"][1] = report["given"][0]
    with pytest.raises(MalformedAnswerError):
        run_on(report, torch.ones(2), torch.ones(2))


def changed(event, key, value):
    event[key] = value


SPOILT = {
    "an offset outside the buffer": lambda event: changed(event["args"][0], "layout", [1, [2], [1]]),
    "a stride outside the buffer": lambda event: changed(event["args"][0], "layout", [0, [2], [2]]),
    "an unknown buffer": lambda event: changed(event["args"][0], "buffer", 9),
    "a negative offset": lambda event: changed(event["args"][0], "layout", [-1, [2], [1]]),
    "many numbers by a stride of 0": lambda event: changed(event["args"][0], "layout", [0, [MOST_NUMBERS + 1], [0]]),
    "a large number": lambda event: changed(event["args"], 1, 10**7),
    "a text": lambda event: changed(event["args"], 1, "1e9"),
    "no list of arguments": lambda event: changed(event, "args", {"x": 1}),
    "a result more": lambda event: changed(event, "results", [*event["results"], {"buffer": 2}]),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_what_is_no_launch_is_refused(spoil):
    report = recorded(lambda x: x * 2, torch.ones(2))
    assert torch.equal(run_on(report, torch.tensor([1.0, 3.0])), torch.tensor([2.0, 6.0]))
    spoil(next(event for event in report["events"] if "operator" in event))
    with pytest.raises(MalformedAnswerError):
        run_on(report, torch.ones(2))


def outer(x):
    return x.expand(100).view(100, 1), x.expand(100).view(1, 100)


LARGE = {
    "a product": lambda x: torch.mul(*outer(x)),
    "a product of matrices": lambda x: torch.mm(*outer(x)),
    "a sum with a product of matrices": lambda x: torch.addmm(x, *outer(x)),
    "a choice": lambda x: torch.where(x.expand(1, 1, 100) > 0, *outer(x)),
    "a comparison": lambda x: torch.allclose(*outer(x)),
}


@pytest.mark.parametrize("large", LARGE.values(), ids=LARGE)
def test_a_large_result_is_refused_before_it_is_computed(large):
    report = recorded(large, torch.ones(1))
    with LaunchRecorder() as recorder, pytest.raises(MalformedAnswerError):
        LaunchMachine(report, [torch.ones(1)])
    assert not any({(100, 1), (1, 100)} <= set(each.shapes) for each in recorder.launches)


def test_the_order_of_options_hides_no_large_result():
    report = recorded(lambda x: torch.mm(x.view(1, 100), x.view(100, 1)), torch.ones(100))
    (launch,) = (event for event in report["events"] if "operator" in event)
    first, second = launch["args"]
    launch |= {"args": [], "options": {"mat2": first, "self": second}}
    with pytest.raises(CheckFailedError, match="a tensor is given as an option"):
        run_on(report, torch.ones(100))


def test_no_out_of_another_size_is_written():
    report = recorded(lambda x: torch.mul(x.view(2, 1), x.view(1, 2), out=torch.empty(2, 2)), torch.ones(2))
    (launch,) = (event for event in report["events"] if "operator" in event)
    launch["options"]["out"]["layout"] = [0, [0], [1]]
    with pytest.raises(CheckFailedError, match="does not run on other inputs: "):
        run_on(report, torch.ones(2))


def test_all_that_the_launches_of_a_report_touch_is_bounded():
    report = recorded(lambda x: torch._foreach_zero_([x[:0]] * MOST_ITEMS), torch.ones(2))
    (launch,) = (event for event in report["events"] if "operator" in event)
    times = launch_machine.MOST_TOUCHED // (MOST_ITEMS * launch_machine.A_VIEW)
    report["events"] += [launch] * (times // 2)
    LaunchMachine(report, [torch.ones(2)])
    report["events"] += [launch] * (times // 2)
    with pytest.raises(MalformedAnswerError):
        LaunchMachine(report, [torch.ones(2)])


@pytest.mark.parametrize("sizes", [[MOST_NUMBERS + 1], [100, 100], [1] * 100])
def test_sizes_are_bounded(sizes):
    report = recorded(lambda x: torch.zeros(2), torch.ones(2))
    next(event for event in report["events"] if "operator" in event)["args"] = [sizes]
    with pytest.raises(MalformedAnswerError):
        run_on(report, torch.ones(2))


@pytest.mark.parametrize(
    "name", ["aten.from_file.default", "aten.resize_.default", "os.system", "aten.set_.source_Storage"]
)
def test_an_operator_outside_the_table_is_not_started(name):
    report = recorded(lambda x: x * 2, torch.ones(2))
    next(event for event in report["events"] if "operator" in event)["operator"] = name
    with pytest.raises(CheckFailedError, match="none that this exercise needs"):
        run_on(report, torch.ones(2))


def test_memory_that_no_launch_wrote_holds_no_number():
    known = torch.tensor([1.0, 2.0])
    assert run_on(recorded(lambda x: x + known, torch.ones(2)), torch.ones(2)).isnan().all()


def test_dropout_draws_from_the_seed_of_the_host_and_from_no_seed_of_the_answer():
    calls, steps = calls_of(3, shape=(9, 9), draws=5), ["times", "drop"]
    given = tensors_of(calls)

    def outputs(text):
        found = LaunchMachine(report_of(replaying(text), calls, steps), given, [11, 12, 13]).calls
        return [call.output for call in found]

    def expected(first, second, seed):
        torch.manual_seed(seed)
        return replayed_runs.program(steps, [0.5])(first, second)

    with torch.random.fork_rng(devices=[]):
        right = list(map(expected, given[::2], given[1::2], [11, 12, 13]))
    own = reference("15_replay_by_shape", ("graph.replay()", "torch.manual_seed(3)\n        graph.replay()"))
    assert all(map(torch.equal, outputs(None), right))
    assert not any(map(torch.equal, outputs(own), right))


def test_a_copied_storage_is_a_launch():
    x = torch.tensor([5.0, 6.0])
    assert torch.equal(run_on(recorded(lambda x: copy.deepcopy(x) + 0, torch.ones(2)), x), x)


@pytest.mark.parametrize("result", ["x.sum().item()", "torch.tensor(x.sum().item())", "x.sum().tolist()"])
def test_a_number_that_the_host_read_is_that_of_the_other_inputs(result):
    report = recorded(lambda x: eval(result, {"x": x, "torch": torch}), torch.ones(2))
    assert run_on(report, torch.tensor([3.0, 4.0])).item() == 7


COPIES = "kept.copy_(new)"
READS = ["bool((kept == new).all())", "bool(torch.isfinite(new).any())", "torch.equal(kept, new)", "new[0, 0].item()"]
READS += ["new[0].tolist()", "new.numpy()", "f'{new[0][0]:.1f}'"]


@pytest.mark.parametrize("read", READS)
def test_who_reads_values_replays_all_the_same(read):
    answer, calls = replaying(reference("15_replay_by_shape", (COPIES, f"{read}, {COPIES}"))), calls_of(3)
    found = LaunchMachine(report_of(answer, calls), tensors_of(calls)).calls
    require_replays(found[1:], len(STEPS))


@pytest.mark.parametrize("look", ["torch.equal(kept, new)", "kept.tolist() == new.tolist()", "(kept == new).all()"])
def test_launches_that_depend_on_numbers_are_wrong_for_others(look):
    calls = [calls_of(1)[0]] * 3

    def outputs(*changes):
        answer = replaying(reference("15_replay_by_shape", *changes))
        return [call.output for call in LaunchMachine(report_of(answer, calls), tensors_of(calls)).calls]

    right, found = outputs(), outputs((COPIES, f"{look} or {COPIES}"))
    assert torch.equal(found[0], right[0])
    assert not torch.allclose(found[1], right[1])


@pytest.mark.parametrize(
    ("result", "read"), [("x + 0", False), ("(x + 0).item()", True), ("torch.tensor((x + 0).tolist())", True)]
)
def test_a_result_that_the_host_read_is_known(result, read):
    report = recorded(lambda x: eval(result, {"x": x, "torch": torch}), torch.tensor(2.5))
    (call,) = LaunchMachine(report, [torch.tensor(3.5)]).calls
    assert (call.output.item(), call.was_read) == (3.5, read)


@pytest.mark.parametrize("place", sorted(replayed_runs.PLACES))
def test_no_option_of_a_launch_chooses_the_kind_of_memory(place):
    # a number in the place of a dtype ends PyTorch's process by a signal, so it must not get there
    report = recorded(lambda x: torch.zeros(2), torch.ones(2))
    next(event for event in report["events"] if "operator" in event)["options"] = {place: 3}
    with pytest.raises(MalformedAnswerError):
        run_on(report, torch.ones(2))


def test_a_read_of_nothing_is_no_fault_of_ours():
    report = recorded(lambda x: x * 2, torch.ones(2))
    launch = next(event for event in report["events"] if "operator" in event)
    nothing = {**launch["args"][0], "layout": [0, [0], [1]]}
    report["events"].append({"operator": replayed_runs.READ, "args": [nothing], "options": {}, "results": []})
    with pytest.raises(MalformedAnswerError):
        run_on(report, torch.ones(2))


def test_truth_values_agree_with_no_numbers():
    assert agree(torch.ones(2), torch.ones(2))
    assert not agree(torch.tensor([True, True]), torch.ones(2))
