"""Counterexample: inputs that prove a program wrong.

the JSON of a value    None, bool, int, float and str stand for themselves, lists for lists; everything else is an
                       object with one key: {"tuple": [...]}, {"dict": {...}}, {"float": "nan"},
                       {"tensor": number}, {"graph": number}
"""

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.protocol.contract import Count, GraphData, Json, Request


@dataclass(frozen=True)
class PackedGraph:
    """A program among the values, and the numbers of its tensors by path."""

    graph: GraphData
    tensors: Mapping[str, Count]


@dataclass(frozen=True)
class PackedValue:
    """A value as JSON (see above) and the graphs in it; tensors come beside them."""

    value: Json
    graphs: tuple[PackedGraph, ...]


@dataclass(frozen=True)
class FindInputs(Request[PackedValue]):
    """Call the function with plain data, and pack the inputs that it returns."""

    question: Json


@dataclass(frozen=True)
class RunTrial(Request[PackedValue]):
    """Run one program of the host's on inputs that a student chose, one by one if they are a tuple."""

    program: str
    seed: int
    double: bool
    """Whether floating-point tensors are in double precision."""
    inputs: PackedValue
