"""Describe programs without control flow as plain data, so that they can be sent to another process."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from course_lib.errors import ModelError


def program_from_steps(description: Mapping[str, Any]) -> tuple[Callable[..., Any], list[torch.Tensor]]:
    """Return a function and fresh inputs for it, from a description in plain data.

        >>> steps = [["mm", "%0", "%1"], ["relu", "%2"]]
        >>> wanted = {"inputs": [{"shape": [2, 3]}, {"shape": [3, 4], "dtype": "float32"}], "steps": steps}
        >>> program, inputs = program_from_steps(wanted)
        >>> program(*inputs).shape
        torch.Size([2, 4])

    Each step is the name of an operator of `torch.ops.aten` and its arguments. `"%2"` is the third value: inputs
    are counted first, then results. `"%2.1"` is the second output of an operator that has several. The function
    returns the result of the last step. Raises `ModelError` for an operator that does not exist.
    """
    steps = [(step[0], list(step[1:])) for step in description["steps"]]
    for name, _ in steps:
        if not hasattr(torch.ops.aten, name):
            raise ModelError(f"program_from_steps got the operator {name!r}, which torch.ops.aten does not have.")

    def program(*inputs: torch.Tensor) -> Any:
        values: list[Any] = list(inputs)
        for name, arguments in steps:
            values.append(getattr(torch.ops.aten, name)(*(_value(argument, values) for argument in arguments)))
        return values[-1]

    dtypes = [getattr(torch, one.get("dtype", "float32")) for one in description["inputs"]]
    shapes = [one["shape"] for one in description["inputs"]]
    return program, [torch.randn(shape).to(dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]


def _value(argument: Any, values: list[Any]) -> Any:
    if isinstance(argument, list):
        return [_value(item, values) for item in argument]
    if not (isinstance(argument, str) and argument.startswith("%")):
        return argument
    number, _, output = argument[1:].partition(".")
    return values[int(number)][int(output)] if output else values[int(number)]


Steps = Mapping[str, Any]


def option_programs(rows: int, width: int) -> dict[str, Steps]:
    """Return five programs on matrices of `rows` by `width`, by their names.

        >>> sorted(option_programs(48, 40))
        ['attention', 'neighbours', 'softmax', 'totals', 'two products']

    For each program, some options of Inductor change how it is fused, and others do not.
    """
    matrix = {"shape": [rows, width]}
    return {
        "softmax": {"inputs": [matrix], "steps": [["softmax", "%0", 1]]},
        "neighbours": {"inputs": [matrix], "steps": _neighbours(rounds=3)},
        "totals": {"inputs": [matrix] * 8, "steps": _totals(8)},
        "two products": {
            "inputs": [matrix, {"shape": [width, rows]}] * 2,
            "steps": [["mm", "%0", "%1"], ["mm", "%2", "%3"], ["add", "%4", "%5"]],
        },
        "attention": {
            "inputs": [{"shape": [2, rows, width]}] * 3,
            "steps": [
                ["transpose", "%1", 1, 2],
                ["bmm", "%0", "%3"],
                ["mul", "%4", 0.125],
                ["softmax", "%5", 2],
                ["bmm", "%6", "%2"],
            ],
        },
    }


def _neighbours(rounds: int) -> list[list[Any]]:
    """Return steps that replace each element by the mean of itself and the one below, several times."""
    steps: list[list[Any]] = []
    for i in range(rounds):
        x = 4 * i
        steps += [["slice", f"%{x}", 0, 0, -1], ["slice", f"%{x}", 0, 1], ["add", f"%{x + 1}", f"%{x + 2}"]]
        steps += [["mul", f"%{x + 3}", 0.5]]
    return steps


def _totals(count: int) -> list[list[Any]]:
    """Return steps that add all inputs and apply softmax to each row."""
    steps: list[list[Any]] = [["add", "%0", "%1"]]
    steps += [["add", f"%{i}", f"%{count + i - 2}"] for i in range(2, count)]
    return [*steps, ["softmax", f"%{2 * count - 2}", 1]]
