"""Analysis: a program of the host's to plain data."""

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.protocol.contract import Json, Request
from autograder.protocol.requests.value import Value


@dataclass(frozen=True)
class Analyse(Request[Value]):
    """Call the function with what the function `make` of the module `text` gives for `arguments`.

    A graph that it returns is written as rows of name, op, target and the names of the nodes that it reads.
    """

    text: str
    make: str
    arguments: Mapping[str, Json]
