"""The panel catches what TORCH_LOGS would print, and leaves the loggers alone afterwards."""

import logging

import pytest
import torch

from course_lib.capture.log_panel import logged
from course_lib.errors import CaptureError


def compiled():
    torch._dynamo.reset()

    def halve(x):
        half = x / 2
        print("half")
        return half + 1

    return torch.compile(halve, backend="eager")


def test_recompiles_and_breaks_are_caught_and_nothing_is_printed(capsys):
    run = compiled()
    with logged("recompiles", "graph_breaks") as panel:
        run(torch.ones(3))
        run(torch.ones(3, dtype=torch.float64))
    said = str(panel)
    assert "Graph break" in said
    assert "dtype mismatch" in said
    assert "/test_log_panel.py" not in said  # no folder of this machine
    assert "test_log_panel.py" in said
    assert "dtype mismatch" not in capsys.readouterr().err
    assert "TORCH_LOGS=recompiles,graph_breaks" in panel._repr_html_()


@pytest.mark.parametrize("name", ["guards", "bytecode", "graph_code"])
def test_each_name_of_the_notebook_still_logs_something(name):
    with logged(name) as panel:
        compiled()(torch.ones(3))
    assert panel.messages


def test_loggers_are_as_they_were_even_after_an_error():
    logger = logging.getLogger("torch._dynamo.guards.__recompiles")
    before = (logger.level, list(logger.handlers), logger.propagate)
    with pytest.raises(ZeroDivisionError), logged("recompiles"):
        raise ZeroDivisionError
    assert (logger.level, list(logger.handlers), logger.propagate) == before


def test_an_unknown_name_is_refused():
    with pytest.raises(CaptureError, match="'nonsense'"), logged("nonsense"):
        pass
