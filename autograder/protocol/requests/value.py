"""Value: plain data to plain data."""

from dataclasses import dataclass

from autograder.protocol.contract import Json, Request


@dataclass(frozen=True)
class Value:
    """The return value of a function."""

    value: Json


@dataclass(frozen=True)
class Ask(Request[Value]):
    """Call the function with plain data."""

    question: Json
