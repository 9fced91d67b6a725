"""Whatever a worker sends, the decoder gives a right reply or says that it is malformed: no other exception."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from autograder.protocol import Message, ProtocolError, Ready, Request, Result, requests
from autograder.protocol.contract import Done, read_reply
from autograder.protocol.decoder import decode, encode
from autograder.protocol.requests import (
    analysis,
    archive,
    callable,  # noqa: A004 - the kind's name
    captured,
    counterexample,
    graph,
    loads,
    module,
    schedule,
    timed_rounds,
    value,
)
from tests.autograder.protocol.mutations import mutated
from tests.drawn import chance

MUTATIONS = 10_000  # of the replies of each file
FILES = (analysis, archive, callable, captured, counterexample, graph, loads, module, timed_rounds, schedule, value)
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
WRITTEN = graph.WrittenGraph(GRAPH, ("weight", "bias"))
CALLED = callable.Called(2, True, (True, False), (0,))
NODE = archive.ArchiveNode("prim::If", ((archive.ArchiveNode("aten::exp"),), ()), (archive.ArchiveNode("aten::add"),))
PACKED = counterexample.PackedValue(
    {"tuple": [{"tensor": 0}, {"dict": {"a": {"float": "nan"}}}, 1.5]}, (counterexample.PackedGraph(GRAPH, {"w": 1}),)
)
REPLIES: dict[type[Any], Any] = {
    Done: Done(),
    archive.ArchiveGraph: archive.ArchiveGraph((NODE, NODE)),
    archive.ArchiveRun: archive.ArchiveRun((1, 2)),
    callable.Called: CALLED,
    callable.CalledConcurrently: callable.CalledConcurrently((CALLED, CALLED), (2, 3)),
    callable.GraphCalled: callable.GraphCalled(CALLED, callable.Cost(1, 2, 3)),
    captured.CollectedGraphs: captured.CollectedGraphs(1, (captured.CollectedGraph(GRAPH, ("w",), ((2, 3), ())),)),
    counterexample.PackedValue: PACKED,
    graph.WrittenGraph: WRITTEN,
    loads.EventsRead: loads.EventsRead({"loss": ((1, 0.5), (2, None))}, 3, {"weights": 1}),
    loads.LoweredCost: loads.LoweredCost(1, 2, 3, 4, 5),
    module.Described: module.Described(("weight",), ("scale",), ("log/events",)),
    value.Value: value.Value({"a": [1, None, "x", 0.5, True]}),
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


@pytest.mark.parametrize("file", FILES, ids=[file.__name__.rpartition(".")[2] for file in FILES])
def test_a_mutated_reply_is_malformed_or_says_just_what_was_sent(file):
    draw = chance(file.__name__)
    kinds = requests_of(file)
    cases = [(kind.__new__(kind), crossed(reply_of(kind))) for kind in kinds]
    for request, honest in cases:
        assert crossed(read_reply(request, Message(honest)).body) == honest
    refused = 0
    for number in range(MUTATIONS):
        request, honest = cases[number % len(cases)]
        body = mutated(honest, draw)
        try:
            result: Result[Any] = read_reply(request, Message(body))
        except ProtocolError:
            refused += 1
            continue
        assert type(result.body) is type(reply_of(type(request)))
        assert same(crossed(result.body), body)
    assert 0 < refused < MUTATIONS or not honest


def same(left: Any, right: Any) -> bool:
    """Equal, and of equal types all the way down."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def test_a_mutated_first_message_is_malformed_or_says_just_what_was_sent():
    draw, honest = chance("ready"), crossed(Ready("2.13", False))
    for _ in range(MUTATIONS):
        body = mutated(honest, draw)
        try:
            ready = decode(body, Ready)
        except ProtocolError:
            continue
        assert same(crossed(ready), body)


def test_every_file_of_requests_is_tried_and_no_two_requests_have_one_name():
    files = {path.stem for path in Path(requests.__path__[0]).glob("*.py")} - {"__init__"}
    tried = [kind.__name__ for file in FILES for kind in requests_of(file)]

    assert {file.__name__.rpartition(".")[2] for file in FILES} == files
    assert len(set(tried)) == len(tried) > 20
