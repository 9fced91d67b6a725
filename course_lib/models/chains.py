"""Small programs on one matrix, written as lists of steps, to predict what Inductor makes of them.

    >>> print(source_of(["product", "bias", "sine"]))
    def program(x, w, b, r):
        kept = []
        x = x @ w
        x = x + b
        x = torch.sin(x)
        return x, kept

`x`, `w` and `r` are (n, n), `b` is (n,).
"""

import linecache
from collections.abc import Callable, Sequence
from typing import Any

import torch

from course_lib.errors import ModelError

LINES = {
    "sine": "x = torch.sin(x)",
    "bias": "x = x + b",
    "residual": "x = x + r",
    "in_place": "x = x.clone().mul_(0.5)",
    "share": "x = x / x.sum(dim=1, keepdim=True)",
    "transpose": "x = x.t()",
    "product": "x = x @ w",
    "sort": "x = torch.sort(x, dim=1).values",
    "unused": "torch.exp(x @ r)",
    "keep": "kept.append(x)",
    "break": "torch._dynamo.graph_break()",
}


def source_of(steps: Sequence[str]) -> str:
    """Return the program as text: a function of x, w, b and r."""
    unknown = [step for step in steps if step not in LINES]
    if unknown:
        raise ModelError(f"There is no step {unknown[0]!r}; steps are {', '.join(LINES)}.")
    lines = ("kept = []", *(LINES[step] for step in steps), "return x, kept")
    return "\n".join(("def program(x, w, b, r):", *(f"    {line}" for line in lines)))


def program_of(steps: Sequence[str]) -> Callable[..., Any]:
    """Return the program as a new function, which Dynamo has not compiled before."""
    text = f"{source_of(steps)}\n"
    filename = f"<chain {hash(text)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "chain", "torch": torch}
    exec(compile(text, filename, "exec"), namespace)
    program: Callable[..., Any] = namespace["program"]
    return program


def inputs_of(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return x, w, b and r of size `n`, with positive values, so that every step is defined."""
    return torch.rand(n, n), torch.rand(n, n), torch.rand(n), torch.rand(n, n)
