"""A graph that an answer describes runs as the code that torch.fx makes of it: no text in it is part of that code."""

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import fx, nn

from autograder.host.artifacts import ArtifactRefusedError, read_artifact
from autograder.host.channel import MalformedAnswerError
from autograder.host.shared_inputs import to_raw
from autograder.protocol import Result
from autograder.protocol.requests.answers import WrittenGraph
from course_lib.graph import to_data

# How a text could leave its place in generated code: at once, out of brackets, quotes or a line, in a braced part.
WAYS = ("{}", "x); {}; (", "'); {}; ('", "\n    {}\n    ", "x = {}", "{{{}}}", "x: {} = 1", "\\'); {}  # ")


class Program(nn.Module):
    """Have each kind of node, argument, module and tensor that the description of a graph can have."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x: torch.Tensor, y: float = 0.5, mode: str = "none") -> dict[str, Any]:
        """Return a dict with a tuple and a list."""
        h = self.part(x)[..., 1:3].to(torch.float64) * self.scale[1:3] + float("inf")
        h = torch.nn.functional.pad(h, (1, 1), mode="constant", value=2.0).div(3, rounding_mode="floor")
        return {"first": (h, [torch.cat([x, x], dim=0)]), "second": h.shape}


def written() -> tuple[dict[str, Any], Result[WrittenGraph]]:
    """Return the description of the program's graph, and the reply with it."""
    data, tensors = to_data(fx.symbolic_trace(Program().eval()))
    graph = json.loads(json.dumps(data))
    return graph, Result(WrittenGraph(graph, tuple(tensors)), [to_raw(each) for each in tensors.values()])


def replaced(data: Any, text: str) -> Iterator[tuple[Any, str]]:
    """Yield the data with a text in place of one value or one key, and where it is; each place once."""
    if isinstance(data, dict):
        for key in data:
            for value, where in replaced(data[key], text):
                yield {**data, key: value}, f"{key}.{where}"
            yield {text if each == key else each: data[each] for each in data}, f"{key}: its key"
    elif isinstance(data, list):
        for i in range(len(data)):
            for value, where in replaced(data[i], text):
                yield [*data[:i], value, *data[i + 1 :]], f"{i}.{where}"
    yield text, "all of it"


def run(graph: Any, reply: Result[WrittenGraph]) -> bool:
    """Read a description as the host does and run it as the clean worker does; return whether it was read."""
    body = WrittenGraph(graph, reply.body.paths) if isinstance(graph, dict) else None
    try:
        assert body is not None
        module = read_artifact(Result(body, reply.tensors), max_nodes=200).rebuilt()
    except (ArtifactRefusedError, MalformedAnswerError, AssertionError):
        return False
    with contextlib.suppress(Exception):  # a text where a number belongs
        module(torch.ones(2, 4))
    module.code, str(module), copy.deepcopy(module)
    return True


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # a text that is called, indexed
@pytest.mark.parametrize("way", WAYS)
def test_a_mark_in_any_place_of_a_graph_is_refused_or_not_run(way: str, tmp_path: Path) -> None:
    graph, reply = written()
    assert run(graph, reply)
    file = tmp_path / "ran"
    text = way.format(f"__import__('builtins').open({str(file)!r}, 'w')")
    read = [where for changed, where in replaced(graph, text) if run(changed, reply) and not file.exists()]
    assert not file.exists()
    # What may be any text: arguments that are texts or numbers, and keys of a dict that is an argument.
    assert {where.split(".")[2] for where in read} == {"args", "kwargs"}


def test_the_mark_runs_where_code_is_made_of_its_name(tmp_path: Path) -> None:
    file = tmp_path / "ran"
    graph = fx.Graph()
    graph.output(graph.create_node("placeholder", f"x=__import__('builtins').open({str(file)!r}, 'w')", name="x"))
    with contextlib.suppress(Exception):
        fx.GraphModule(nn.Module(), graph)
    assert file.exists()
