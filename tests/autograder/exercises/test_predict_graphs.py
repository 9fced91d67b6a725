"""The host's rules for programs of steps are Dynamo's: each is compiled, and its graphs counted."""

import contextlib
import io

import pytest
import torch

from autograder.exercises.dynamo.predict_graphs import random_steps
from autograder.exercises.hidden.dynamo.predict_graphs import graph_sizes
from autograder.host.draw import Draw
from course_lib.errors import ModelError
from course_lib.models.steps import program_of, source_of

FIXED = [
    [{"do": "print"}, {"do": "print"}],
    [{"do": "compute"}, {"do": "print"}, {"do": "print"}, {"do": "compute"}],
    [{"do": "item"}, {"do": "value_if"}, {"do": "log"}],
    [{"do": "compute"}, {"do": "call", "body": [{"do": "log"}, {"do": "compute"}]}, {"do": "item"}],
    [{"do": "call", "body": [{"do": "compute"}, {"do": "append"}]}, {"do": "size_if"}],
    [{"do": "repeat", "times": 3, "body": [{"do": "compute"}, {"do": "print"}]}, {"do": "compute"}],
    [{"do": "repeat", "times": 3, "body": [{"do": "compute"}]}, {"do": "compute"}],
    [{"do": "append"}],
    [{"do": "item"}, {"do": "compute"}, {"do": "repeat", "times": 2, "body": [{"do": "log"}]}, {"do": "compute"}],
]


def sizes_by_dynamo(steps):
    sizes = []

    def keep(graph_module, example_inputs):
        sizes.append(sum(n.op.startswith("call_") for n in graph_module.graph.nodes))
        return graph_module.forward

    torch._dynamo.reset()
    with contextlib.redirect_stdout(io.StringIO()):
        torch.compile(program_of(steps), backend=keep)(torch.rand(3))
    return sizes


@pytest.mark.parametrize("steps", FIXED, ids=lambda steps: "-".join(s["do"] for s in steps))
def test_a_program_has_the_graphs_that_dynamo_makes(steps):
    assert graph_sizes(steps) == sizes_by_dynamo(steps), source_of(steps)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_have_them_too(seed):
    draw = Draw(seed, "steps")
    steps = random_steps(draw, draw.integer(2, 7), calls=seed % 2 == 0, loops=seed % 3 == 0)
    assert graph_sizes(steps) == sizes_by_dynamo(steps), source_of(steps)


def test_a_step_that_does_not_exist_is_refused():
    with pytest.raises(ModelError, match="no step 'jump'"):
        source_of([{"do": "jump"}])
