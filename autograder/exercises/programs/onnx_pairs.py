"""A module and two ONNX models of it; the text of this file is sent to workers, which build and run all three.

A question is `{"module", "numbers", "limits", "first", "second"}`: the name of a class of this text, the values of its
buffers, the least and greatest value of each open size and each input, and both models in ONNX's text form. Nothing in
it says which model is wrong. Onnx and its runtime are imported where they are used, since the host reads this file.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


class Program(nn.Module):
    """A module with a buffer for each of its numbers."""

    def __init__(self, **numbers: Any) -> None:
        super().__init__()
        for name, value in numbers.items():
            self.register_buffer(name, torch.tensor(value))


class Average(Program):
    """Map (batch, length, width) to (batch, width): the mean of all tokens, scaled."""

    scale: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Return the scaled means."""
        return x.mean(1) * self.scale


class Centred(Program):
    """Subtract from each row of (batch, width) the mean of all rows, and scale."""

    scale: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Return the scaled differences."""
        return (x - x.mean(0)) * self.scale


class Positions(Program):
    """Add to each token of (batch, length, width) the row of a table that belongs to its position."""

    table: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Return the sums."""
        return x + self.table[: x.shape[1]]


class Normalised(Program):
    """Normalise (batch, width) by stored statistics, as nn.BatchNorm1d does when it is evaluated."""

    mean: Tensor
    deviation: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Return normalised rows."""
        return (x - self.mean) / self.deviation


class Limited(Program):
    """Scale (batch, width) down if its largest number is above a limit, then multiply each column by a weight."""

    limit: Tensor
    weight: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Return the weighted rows."""
        largest = x.abs().max()
        return (x * (self.limit / largest) if largest > self.limit else x) * self.weight


def model(text: str) -> bytes:
    """Return the bytes of a model in ONNX's text form."""
    import onnx.parser

    found = onnx.parser.parse_model(text)
    onnx.checker.check_model(found, full_check=True)
    data: bytes = found.SerializeToString()
    return data


def module_of(question: Mapping[str, Any]) -> nn.Module:
    """Return the module of a question, in evaluation mode."""
    made: nn.Module = globals()[question["module"]](**question["numbers"])
    return made.eval()


def given(question: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what the answer is called with: the module, the limits, and the bytes of both models."""
    limits = {name: tuple(ends) for name, ends in question["limits"].items()}
    return module_of(question), limits, model(question["first"]), model(question["second"])


def run(question: Mapping[str, Any], *inputs: Tensor) -> Mapping[str, Any]:
    """Return what the module and both models give for these inputs, or a text if one of them does not run."""
    import onnxruntime

    results: dict[str, Any] = {}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    with torch.no_grad():
        results["module"] = module_of(question)(*inputs)
    for which in ("first", "second"):
        session = onnxruntime.InferenceSession(model(question[which]), options)
        names = [each.name for each in session.get_inputs()]
        try:
            found = session.run(None, {name: each.numpy() for name, each in zip(names, inputs, strict=True)})
            results[which] = torch.from_numpy(found[0])
        except Exception as error:  # the runtime's classes have no common parent
            results[which] = str(error)[:200]
    return results
