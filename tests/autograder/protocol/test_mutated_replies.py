"""Whatever a worker sends, the decoder gives a right reply or says that it is malformed: no other exception."""

import copy
import inspect
import json
import random
from pathlib import Path
from typing import Any

import pytest

from autograder.protocol import Done, Message, ProtocolError, Ready, Request, requests
from autograder.protocol.contract import read_reply
from autograder.protocol.decoder import decode, encode
from autograder.protocol.requests import answers, kernel_runs, loads, timed_rounds
from tests.drawn import chance

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**63, 10**299, 0.0, 1.0, -0.5, 1e308, "", "x", "\ud800", "x" * 2000, [], [[]], [0],
    [True], {}, {"": None}, {"tensor": 0}, {"request": "Ask"}, "__class__", [None] * 9,
)  # fmt: skip
MUTATIONS = 10_000  # of each class of replies
FILES = (answers, kernel_runs, loads, timed_rounds)
GRAPH = {
    "version": 1,
    "nodes": [
        {"name": "x", "op": "placeholder", "target": "x", "args": [], "kwargs": {}},
        {"name": "relu", "op": "call_function", "target": "torch.relu", "args": [{"node": "x"}], "kwargs": {}},
        {"name": "output", "op": "output", "target": "output", "args": [{"node": "relu"}], "kwargs": {}},
    ],
    "modules": {},
    "tensors": {},
}
OWN = answers.OwnOperator("step::end", "forward", "backward", ("y",), (), ("x", "bias"))
WRITTEN = answers.WrittenGraph(GRAPH, ("weight", "bias"), (OWN,))
CALLED = answers.Called(2, True, (True, False), (0,))
NODE = loads.ArchiveNode("prim::If", ((loads.ArchiveNode("aten::exp"),), ()), (loads.ArchiveNode("aten::add"),))
PACKED = answers.PackedValue(
    {"tuple": [{"tensor": 0}, {"dict": {"a": {"float": "nan"}}}, 1.5]}, (answers.PackedGraph(GRAPH, {"w": 1}),)
)
REPLIES: dict[type[Any], Any] = {
    Ready: Ready("2.13", cuda=False),
    Done: Done(),
    timed_rounds.Captured: timed_rounds.Captured(replays=True),
    loads.ArchiveGraph: loads.ArchiveGraph((NODE, NODE)),
    loads.ArchiveRun: loads.ArchiveRun((1, 2)),
    answers.Called: CALLED,
    answers.CalledConcurrently: answers.CalledConcurrently((CALLED, CALLED)),
    loads.Cost: loads.Cost(1, 2, 3, 4, 5, 6),
    loads.GraphCalled: loads.GraphCalled(CALLED, loads.Cost(1, 2, 3, 4, 5, 6), (0, 2)),
    answers.CollectedGraphs: answers.CollectedGraphs(1, (answers.CollectedGraph(WRITTEN, ((2, 3), ())),), (WRITTEN,)),
    answers.PackedValue: PACKED,
    answers.ValueOnGraph: answers.ValueOnGraph({"a": [1, None]}, WRITTEN),
    answers.WrittenGraph: WRITTEN,
    loads.CountedStep: loads.CountedStep(loads.StepCost(1, 2, 3, 4), (True, False)),
    loads.StepCost: loads.StepCost(1, 2, 3, 4),
    loads.EventsRead: loads.EventsRead({"loss": ((1, 0.5), (2, None))}, {"aten::mm": 3}, {"weights": 1}),
    kernel_runs.KernelsRun: kernel_runs.KernelsRun(
        is_tuple=True,
        outputs=(1, 2),
        operands=(kernel_runs.OperandTraffic("x", "input", 8, 8, 8, 0, 0, 0),),
        launches=(kernel_runs.KernelLaunch("kernel", (2, 1, 1), 16, 8, 4),),
        strays=(kernel_runs.StrayAccess("store", 2, 7, "x", 9),),
        conflicts=(kernel_runs.SharedElement(0, "x", 3, (0, 1), "atomic"),),
        widest=128,
        live=640,
        undefined=(4, 7),
        races=(kernel_runs.SharedElement(0, "x", 5, (1, 2), "load"),),
        uncompiled=0,
    ),
    loads.LoweredCost: loads.LoweredCost(1, 2, 3, 4, 5),
    loads.Writes: loads.Writes(("add_", "copy_")),
    answers.Described: answers.Described(("weight",), ("scale",), ("log/events",)),
    answers.Value: answers.Value({"a": [1, None, "x", 0.5, True]}),
}


def requests_of(file: Any) -> list[type[Request[Any]]]:
    made = [kind for _, kind in inspect.getmembers(file, inspect.isclass) if kind.__module__ == file.__name__]
    return [kind for kind in made if issubclass(kind, Request)]


def reply_of(request: type[Request[Any]]) -> Any:
    """The honest reply to a request, by the class that the request names."""
    (kind,) = (base.__args__[0] for base in request.__orig_bases__)  # type: ignore[attr-defined]
    return REPLIES[kind]


def crossed(body: Any) -> Any:
    return json.loads(json.dumps(body, default=encode))


def mutated(value: Any, draw: random.Random) -> Any:
    """Return the value with one to three changes."""
    value = copy.deepcopy(value)
    for _ in range(draw.randint(1, 3)):
        value = _changed(value, draw)
    return value


def _changed(value: Any, draw: random.Random) -> Any:
    if isinstance(value, dict) and draw.random() < 0.9:
        return _changed_object(value, draw)
    if isinstance(value, list) and draw.random() < 0.8:
        return _changed_list(value, draw)
    if type(value) in (int, float) and draw.random() < 0.4:
        return draw.choice((-value, value + 1, value * 10, float(value), str(value), bool(value)))
    return copy.deepcopy(draw.choice(ODD))


def _changed_object(value: dict[str, Any], draw: random.Random) -> Any:
    kind = draw.random()
    if kind < 0.1:
        return {**value, draw.choice(("more", "", "request", "kind")): draw.choice(ODD)}
    if not value:
        return draw.choice(ODD)
    key = draw.choice(list(value))
    if kind < 0.2:
        return {name: item for name, item in value.items() if name != key}
    if kind < 0.3:
        return {(f"{name}s" if name == key else name): item for name, item in value.items()}
    if kind < 0.35:
        return list(value.items()) if draw.random() < 0.5 else list(value.values())
    return {**value, key: _changed(value[key], draw)}


def _changed_list(value: list[Any], draw: random.Random) -> Any:
    if not value or draw.random() < 0.2:
        return [*value, copy.deepcopy(draw.choice(ODD))]
    place = draw.randrange(len(value))
    kind = draw.random()
    if kind < 0.2:
        return value[:place] + value[place + 1 :]
    if kind < 0.3:
        return value + value
    return [*value[:place], _changed(value[place], draw), *value[place + 1 :]]


@pytest.mark.parametrize("kind", REPLIES, ids=lambda kind: kind.__name__)
def test_a_mutated_reply_is_malformed_or_says_just_what_was_sent(kind):
    draw, honest = chance(kind.__name__), crossed(REPLIES[kind])
    refused = 0
    for _ in range(MUTATIONS):
        body = mutated(honest, draw)
        try:
            reply = decode(body, kind)
        except ProtocolError:
            refused += 1
            continue
        assert type(reply) is kind
        assert same(crossed(reply), body)
    assert 0 < refused < MUTATIONS or not honest


def same(left: Any, right: Any) -> bool:
    """Equal, and of equal types all the way down."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def test_every_request_is_answered_with_a_reply_that_is_tried_and_no_two_have_one_name():
    files = {path.stem for path in Path(requests.__path__[0]).glob("*.py")} - {"__init__"}
    tried = [kind for file in FILES for kind in requests_of(file)]

    assert {file.__name__.rpartition(".")[2] for file in FILES} == files
    assert len({kind.__name__ for kind in tried}) == len(tried) > 20
    for kind in tried:
        honest = crossed(reply_of(kind))
        assert crossed(read_reply(kind.__new__(kind), Message(honest)).body) == honest
