"""Programs that Inductor fuses in one way or another, depending on an option, as steps for `program_from_steps`."""

from collections.abc import Mapping
from typing import Any

Steps = Mapping[str, Any]


def option_programs(rows: int, width: int) -> dict[str, Steps]:
    """Return five programs on matrices of ``rows`` by ``width``, by their names.

        >>> sorted(option_programs(48, 40))
        ['attention', 'neighbours', 'softmax', 'totals', 'two products']

    Each is worth an experiment with some options of Inductor, and does not care about others.
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
    """Every element becomes the mean of itself and the one below, again and again."""
    steps: list[list[Any]] = []
    for i in range(rounds):
        x = 4 * i
        steps += [["slice", f"%{x}", 0, 0, -1], ["slice", f"%{x}", 0, 1], ["add", f"%{x + 1}", f"%{x + 2}"]]
        steps += [["mul", f"%{x + 3}", 0.5]]
    return steps


def _totals(count: int) -> list[list[Any]]:
    """The sum of all inputs, as shares of each row."""
    steps: list[list[Any]] = [["add", "%0", "%1"]]
    steps += [["add", f"%{i}", f"%{count + i - 2}"] for i in range(2, count)]
    return [*steps, ["softmax", f"%{2 * count - 2}", 1]]
