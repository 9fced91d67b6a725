"""A type hint says all that is accepted, and what it does not allow is refused with a sentence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest

from autograder.protocol import Message, ProtocolError, Request, Result
from autograder.protocol.contract import read_reply, read_request, request_body
from autograder.protocol.decoder import Within, decode, encode


@dataclass(frozen=True)
class Leaf:
    name: str
    size: int | None = None


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    trees: tuple["Tree", ...] = ()


@dataclass(frozen=True)
class Everything:
    how: Literal["dynamo", "dispatch"]
    count: Annotated[int, Within(0, 9)]
    pairs: Mapping[str, tuple[tuple[int, float | None], ...]]
    free: Any
    code: bytes
    tree: Tree | None
    size: Size
    other_size: Size | None = None


@dataclass(frozen=True)
class Grow(Request[Tree]):
    height: int


EVERYTHING = Everything(
    "dynamo", 3, {"a": ((1, None), (2, 0.5))}, [{"x": 1}], b"\x00\xff", Tree((Leaf("l", 2),)), Size.SMALL
)


def crossed(value: object) -> Any:
    return json.loads(json.dumps(value, default=encode))


def test_what_was_encoded_is_decoded_to_the_same():
    decoded = decode(crossed(EVERYTHING), Everything)

    assert decoded == EVERYTHING
    assert type(decoded.size) is Size


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (int, True),
        (int, 1.0),
        (float, 1),
        (bool, 1),
        (str, None),
        (bytes, "no base64!"),
        (Literal["a", "b"], "c"),
        (Literal[1], True),
        (Size, "medium"),
        (Size, None),
        (Size | None, "medium"),
        (tuple[int, ...], {"0": 1}),
        (tuple[int, ...], [1, "2"]),
        (tuple[int, str], [1]),
        (Mapping[str, int], [["a", 1]]),
        (Mapping[str, int], {"a": "1"}),
        (int | None, "1"),
        (Annotated[int, Within(0, 9)], 10),
        (Annotated[int, Within(0, 9)], -1),
        (Annotated[str, Within(0, 3)], "long"),
        (Annotated[tuple[int, ...], Within(0, 1)], [1, 2]),
        (Leaf, {"name": "x"}),
        (Leaf, {"name": "x", "size": 1, "more": 2}),
        (Leaf, {"name": "x", "Size": 1}),
        (Leaf, ["x", 1]),
        (Tree, {"leaves": [], "trees": [{"leaves": [{}], "trees": []}]}),
    ],
)
def test_what_a_hint_does_not_allow_is_refused(kind, data):
    with pytest.raises(ProtocolError):
        decode(data, kind)


def test_a_dataclass_that_holds_itself_may_not_come_nested_without_end():
    data: Any = {"leaves": [], "trees": []}
    for _ in range(50_000):
        data = {"leaves": [], "trees": [data]}
    with pytest.raises(ProtocolError, match="too deeply"):
        decode(data, Tree)
    while data["trees"]:  # or its end would overflow, too
        (data,) = data["trees"]


def test_a_hint_that_two_forms_would_fit_is_an_error_of_ours():
    for kind in (Leaf | Tree, int | Literal[1], set[int], object):
        with pytest.raises(TypeError):
            decode({}, kind)


def test_a_request_names_itself_and_says_what_its_reply_is():
    body = crossed(request_body(Grow(3)))
    assert body == {"request": "Grow", "height": 3}
    assert read_request(body, [Grow]) == Grow(3)
    assert read_reply(Grow(3), Message(crossed(Tree(())))) == Result(Tree(()), ())


@pytest.mark.parametrize("body", [{"height": 3}, {"request": "Grow"}, {"request": ["Grow"]}, {"request": "Fell"}])
def test_a_request_that_is_not_served_is_refused(body):
    with pytest.raises(ProtocolError):
        read_request(body, [Grow])
