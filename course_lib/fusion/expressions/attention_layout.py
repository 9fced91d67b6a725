"""Read how written-out attention arranges its tensors: by transposed matrix products, or by two equations of einsum.

`torch.einsum("bqhd,bkhd->bhqk", q, k)` multiplies queries and keys whose heads stand behind their rows. PyTorch's
operator takes (batch, heads, rows, columns), so the tensors are permuted before it, and its result after it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_lib.fusion.matching import Match

Order = tuple[int, ...]
_EQUATION = re.compile(r"([a-zA-Z.]+),([a-zA-Z.]+)->([a-zA-Z.]+)")
_SPARE = "0123"  # names for the dimensions of an ellipsis, which no equation can use


@dataclass(frozen=True)
class Layout:
    """The order in which each tensor has the dimensions that PyTorch's operator takes."""

    inputs: Mapping[str, Order]  # of q, k and v
    result: Order  # of the dimensions of the operator's result

    def shape(self, name: str, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of an operand after it was permuted."""
        return tuple(shape[dim] for dim in self.inputs[name])


def layout_of(match: Match, rank: int) -> Layout | None:
    """Return the layout of a match whose operands have `rank` dimensions, or None if it is not that of attention."""
    plain = tuple(range(rank))
    if "first" not in match.operands:
        exchanged = {dim % rank if isinstance(dim, int) else dim for dim in (match["i"], match["j"])}
        fits = exchanged == {rank - 2, rank - 1}
        return Layout(dict.fromkeys("qkv", plain), plain) if fits else None
    return _of_equations(str(match["first"]), str(match["second"]), rank)


def _of_equations(first: str, second: str, rank: int) -> Layout | None:
    """Return the layout of scores by one equation and of a result by another, if they are those of attention."""
    scores, output = _terms(first, rank), _terms(second, rank)
    if scores is None or output is None:
        return None
    query, key, made = scores
    read, value, result = output
    inner, width = set(query) & set(key) - set(made), set(value) - set(read)
    if len(inner) != 1 or len(width) != 1:
        return None
    (inner_name,), (width_name,) = inner, width
    orders = (
        _order(query, made[:-1] + inner_name),
        _order(key, made[:-2] + made[-1] + inner_name),
        _order(value, read[:-2] + read[-1] + width_name),
        _order(read[:-1] + width_name, result),
    )
    q, k, v, back = orders
    return None if q is None or k is None or v is None or back is None else Layout({"q": q, "k": k, "v": v}, back)


def _terms(equation: str, rank: int) -> tuple[str, str, str] | None:
    """Return the three terms of an equation, each with `rank` different names, or None."""
    found = _EQUATION.fullmatch(equation.replace(" ", ""))
    if found is None:
        return None
    terms = [term.replace("...", _SPARE[: max(0, rank - len(term) + 3)]) for term in found.groups()]
    if any(len(term) != rank or len(set(term)) != rank for term in terms):
        return None
    return terms[0], terms[1], terms[2]


def _order(given: str, wanted: str) -> Order | None:
    """Return the positions in `given` of the names in `wanted`, or None if the names are not the same."""
    return tuple(given.index(name) for name in wanted) if set(given) == set(wanted) else None
