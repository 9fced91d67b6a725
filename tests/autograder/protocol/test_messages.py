"""A payload has exactly one reading, and a hostile one is refused with a sentence."""

import json
import struct

import pytest

from autograder.protocol import ProtocolError, RawTensor, parse, serialise
from autograder.protocol.messages import MAX_BODY_BYTES, MAX_DEPTH


def body(text: str, tensors: bytes = struct.pack("<I", 0)) -> bytes:
    return struct.pack("<I", len(text.encode())) + text.encode() + tensors


def test_bodies_and_tensors_come_back_as_they_went():
    row = RawTensor("float32", (2, 3), (3, 1), bytes(range(24)))
    expanded = RawTensor("int64", (4,), (0,), struct.pack("<q", 7))
    empty = RawTensor("bool", (0, 5), (5, 1), b"")
    message = parse(serialise({"a": [1, None, "x"]}, [row, expanded, empty]))
    assert message.body == {"a": [1, None, "x"]}
    assert [(t.dtype, t.shape, t.strides, bytes(t.data)) for t in message.tensors] == [
        (t.dtype, t.shape, t.strides, t.data) for t in (row, expanded, empty)
    ]


def test_shared_tensors_lie_in_the_shared_memory():
    shared = memoryview(bytes(64) + struct.pack("<2f", 1.5, 2.5))
    payload = serialise({}, [RawTensor("float32", (2,), (1,), shared[64:], shared=True)], [64])
    assert len(payload) < 80
    (tensor,) = parse(payload, shared).tensors
    assert struct.unpack("<2f", tensor.data) == (1.5, 2.5)
    with pytest.raises(ProtocolError, match="outside"):
        parse(payload, shared[:70])
    with pytest.raises(ProtocolError, match="outside"):
        parse(payload)


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        (b"", "ends before"),
        (struct.pack("<I", MAX_BODY_BYTES + 1), "at most"),
        (struct.pack("<I", 10) + b"{}", "ends"),
        (body('{"a": 1, "a": 2}'), "twice"),
        (body("[1]"), "not an object"),
        (body("{'a': 1}"), "not JSON"),
        (body('{"a": ' + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + "}"), "deeper"),
        (body('{"n": ' + "9" * 5000 + "}"), "not JSON"),
        (body("{}") + b"left over", "too many"),
        (body("{}", struct.pack("<I", 5000)), "at most"),
        (body("{}", struct.pack("<I", 1)), "ends too early"),
        (body("{}", struct.pack("<IBBB5xQQ", 1, 99, 0, 0, 0, 0)), "dtype code 99"),
        (body("{}", struct.pack("<IBBB5xQQqq", 1, 8, 0, 1, 0, 4, -1, 1) + bytes(4)), "negative"),
        (body("{}", struct.pack("<IBBB5xQQqq", 1, 8, 0, 1, 0, 4, 2**40, 1) + bytes(4)), "are needed"),
        (body("{}", struct.pack("<IBBB5xQQqq", 1, 8, 0, 1, 5, 4, 1, 1) + bytes(9)), "overlap"),
        (body("{}", struct.pack("<IBBB5xQQqq", 1, 8, 0, 1, 0, 2**63, 1, 1)), "outside"),
    ],
)
def test_a_payload_of_another_form_is_refused(payload, sentence):
    with pytest.raises(ProtocolError, match=sentence):
        parse(payload)


def test_brackets_inside_strings_do_not_count_as_depth():
    text = "[" * 500 + '\\"' + "]"
    assert parse(serialise({"text": text})).body == {"text": text}


def test_what_is_refused_would_otherwise_be_read_twice_or_differently():
    assert json.loads('{"a": 1, "a": 2}') == {
        "a": 2
    }  # why duplicates are refused: readers differ in which one they keep
