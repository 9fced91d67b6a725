"""Event files are bytes to the host; a clean worker reads them."""

import math

import pytest
import torch

from autograder.host.checks.event_file_checks import read_events
from autograder.host.exercise import CheckFailedError
from autograder.host.sandbox import open_sandbox
from autograder.host.session import Session


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
    assert found.graph_nodes > 1
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
