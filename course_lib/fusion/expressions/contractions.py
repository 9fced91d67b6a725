"""Read the parts of which ATen makes `torch.einsum` of two tensors as its equation.

ATen gives both tensors every dimension of the equation by `unsqueeze`, orders them by `permute`, joins them by `view`,
multiplies by `bmm`, and undoes the last steps in the result. So each dimension of a tensor in between is a row of
dimensions of the source. This module follows them from step to step, and gives each a letter.

A size of 1 in a source stands nowhere in such a row, so that a program with one stays as it is.
"""

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from course_lib.fusion.operands import tensor_facts

aten = torch.ops.aten
_VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)


@dataclass(frozen=True)
class Axis:
    """One dimension of a source: its letter and its size."""

    letter: str
    size: int


Dims = tuple[tuple[Axis, ...], ...]
"""For each dimension of a tensor, the axes that are joined in it, the slowest first."""


@dataclass(frozen=True)
class Contraction:
    """What `torch.einsum(equation, first, second)` computes, and the parts from `bmm` to the result."""

    equation: str
    first: fx.Node
    second: fx.Node
    inside: tuple[fx.Node, ...]


def contraction_of(product: fx.Node) -> Contraction | None:
    """Return the contraction whose `bmm` is `product`, or None if its parts are others."""
    inside = _undone(product)
    left, right = (_followed(one, letters) for one, letters in zip(product.args[:2], _LETTERS, strict=True))
    if inside is None or left is None or right is None:
        return None
    (first, a), (second, b) = left, right
    same = _same_letters((*a[0], *a[2]), (*b[0], *b[1]))
    if same is None:
        return None
    result = _after((*a[:2], tuple(b[2])), inside[1:])
    if result is None or any(len(dim) != 1 for dim in result):
        return None
    terms = [_LETTERS[0][: _rank(first)], "".join(same.get(letter, letter) for letter in _LETTERS[1][: _rank(second)])]
    terms.append("".join(axis.letter for (axis,) in result))
    return Contraction(f"{terms[0]},{terms[1]}->{terms[2]}", first, second, inside)


_LETTERS = (string.ascii_lowercase[:13], string.ascii_lowercase[13:])


def _rank(node: fx.Node) -> int:
    facts = tensor_facts(node)
    return 0 if facts is None else len(facts.shape)


def _undone(product: fx.Node) -> tuple[fx.Node, ...] | None:
    """Return `bmm`, and the view, permutation and view behind it, each of which alone reads the one before; or None."""
    found = [product]
    for targets in (_VIEWS, (aten.permute.default,), _VIEWS):
        (user, *others) = found[-1].users or (None,)
        if user is None or others or user.op != "call_function" or user.target not in targets:
            return None
        found.append(user)
    return tuple(found)


def _followed(operand: object, letters: str) -> tuple[fx.Node, Dims] | None:
    """Return the source of an operand of `bmm`, before it got further dimensions, and its axes in the operand."""
    steps: list[fx.Node] = []
    node = operand
    while isinstance(node, fx.Node) and node.op == "call_function" and node.target in _STEPS:
        if steps and steps[-1].target is aten.unsqueeze.default and node.target is not aten.unsqueeze.default:
            break
        steps.append(node)
        node = node.args[0]
    facts = tensor_facts(node) if isinstance(node, fx.Node) else None
    if not isinstance(node, fx.Node) or facts is None or not steps or steps[-1].target is not aten.unsqueeze.default:
        return None
    if 1 in facts.shape or 0 in facts.shape or len(facts.shape) > len(letters):
        return None
    start = tuple((Axis(letter, size),) for letter, size in zip(letters, facts.shape, strict=False))
    dims = _after(start, steps[::-1])
    return None if dims is None or len(dims) != 3 else (node, dims)


def _after(dims: Dims, steps: Sequence[fx.Node]) -> Dims | None:
    """Return the axes in each dimension after some steps, or None if a step takes an axis apart."""
    for step in steps:
        facts = tensor_facts(step)
        found = None if facts is None else _STEPS[step.target](dims, step, facts.shape)
        if found is None:
            return None
        dims = found
    return dims


def _viewed(dims: Dims, step: fx.Node, shape: Sequence[int]) -> Dims | None:
    left, found = [axis for dim in dims for axis in dim], []
    for size in shape:
        joined: list[Axis] = []
        while size > 1 and left and size % left[0].size == 0:
            size //= left[0].size
            joined.append(left.pop(0))
        if size != 1:
            return None
        found.append(tuple(joined))
    return None if left else tuple(found)


def _permuted(dims: Dims, step: fx.Node, shape: Sequence[int]) -> Dims | None:
    order = step.args[1]
    return tuple(dims[dim] for dim in order) if isinstance(order, Sequence) else None  # type: ignore[index]  # integers


def _unsqueezed(dims: Dims, step: fx.Node, shape: Sequence[int]) -> Dims | None:
    at = step.args[1]
    if not isinstance(at, int):
        return None
    at %= len(shape)
    return (*dims[:at], (), *dims[at:])


_STEPS: dict[Any, Callable[[Dims, fx.Node, Sequence[int]], Dims | None]] = {
    **dict.fromkeys(_VIEWS, _viewed),
    aten.clone.default: lambda dims, step, shape: dims,
    aten.permute.default: _permuted,
    aten.unsqueeze.default: _unsqueezed,
}


def _same_letters(first: Sequence[Axis], second: Sequence[Axis]) -> dict[str, str] | None:
    """Return the letters of the first factor for those of the second, or None if their sizes differ."""
    if [axis.size for axis in first] != [axis.size for axis in second]:
        return None
    return {theirs.letter: ours.letter for ours, theirs in zip(first, second, strict=True)}
