"""Give BatchNorms the statistics of what reaches them, measured on example inputs."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx, nn

from course_lib.errors import FusionError


def calibrate(gm: fx.GraphModule, paths: Sequence[str], batches: Sequence[Sequence[object]]) -> None:
    """Set running mean and variance of the BatchNorms at `paths` to those of all rows that reach them.

    The graph evaluates, whatever mode it is in. The BatchNorms are set one by one, in the order in which they run, so
    that each sees what the ones before it give once they have their statistics. Afterwards, what reaches each of them
    on these inputs leaves it with mean 0 and variance 1, before weight and bias. The variance is that of the rows
    themselves, divided by their number. Raises `FusionError` if the graph cannot run on the inputs.
    """
    trial = copy.deepcopy(gm).eval()
    called = [str(node.target) for node in gm.graph.find_nodes(op="call_module")]
    for path in sorted(paths, key=called.index):
        rows = torch.cat([_reaching(trial, path, batch) for batch in batches]).double()
        for norm in (trial.get_submodule(path), gm.get_submodule(path)):
            assert isinstance(norm, nn.BatchNorm1d), "the paths are those of BatchNorms"
            if list(rows.shape[1:]) != [norm.num_features]:
                raise FusionError(f"{path} got rows of shape {list(rows.shape)} from the calibration inputs.")
            _set(norm, rows, len(batches))


def _set(norm: nn.BatchNorm1d, rows: torch.Tensor, num_batches: int) -> None:
    mean, variance, tracked = norm.running_mean, norm.running_var, norm.num_batches_tracked
    assert mean is not None, "a BatchNorm that keeps statistics"
    assert variance is not None, "a BatchNorm that keeps statistics"
    assert tracked is not None, "a BatchNorm that keeps statistics"
    mean.copy_(rows.mean(0))
    variance.copy_(rows.var(0, unbiased=False))
    tracked.fill_(num_batches)


class _Reached(Exception):  # noqa: N818  # no error: the run ends where it has what it came for
    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        self.rows = rows


class _Until(fx.Interpreter):
    """Runs a graph up to the call of a module, and gives what reaches it."""

    def __init__(self, gm: fx.GraphModule, path: str) -> None:
        super().__init__(gm)
        self._path = path

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target == self._path:
            raise _Reached(args[0])
        return super().call_module(target, args, kwargs)


def _reaching(gm: fx.GraphModule, path: str, inputs: Sequence[object]) -> torch.Tensor:
    """Return the rows, (rows, channels), that reach a module on these inputs."""
    runner = _Until(gm, path)
    runner.extra_traceback = False  # it would print where the run ended
    try:
        with torch.no_grad():
            runner.run(*copy.deepcopy(list(inputs)))
    except _Reached as reached:
        return reached.rows
    except Exception as error:  # whatever an operator says about its operands
        said = " ".join(str(error).split())[:200]
        raise FusionError(f"The graph cannot run on these calibration inputs ({said}).") from error
    raise AssertionError(f"the graph calls {path}")
