"""What attacks found and was mended, held in small: the hostile files try the same through a worker."""

from __future__ import annotations

import ast
import struct
import time

import pytest

from autograder.host import grading
from autograder.host.channel import AnswerRaisedError
from autograder.host.kit.draw import Draw
from autograder.protocol import ProtocolError, parse


def test_a_string_that_never_ends_is_read_in_time_that_grows_with_its_length():
    body = b'{"value": "' + b'\\"' * 1_900_000
    started_s = time.process_time()

    with pytest.raises(ProtocolError, match="not JSON"):
        parse(struct.pack("<I", len(body)) + body + struct.pack("<I", 0))

    assert time.process_time() - started_s < 5  # going back over it took time squared: hours


def test_a_text_too_long_to_be_a_stub_is_not_parsed(monkeypatch):
    monkeypatch.setattr(ast, "parse", lambda text: pytest.fail("the host parsed it"))

    assert not grading.is_unanswered("x = 1\n" * 10_000, "solve")


def test_each_tensor_has_a_seed_of_its_own():
    draw = Draw(7, "exercise", "check")
    seeds = [draw._generator().initial_seed() for _ in range(100)]

    assert len(set(seeds)) == 100
    assert Draw(7, "exercise", "check").normal(3).equal(Draw(7, "exercise", "check").normal(3))
    assert not draw.normal(3).equal(draw.normal(3))


def test_what_an_exception_says_can_be_written_to_a_file():
    error = AnswerRaisedError({"type": "E\ud800", "message": "\udfff", "part": "<answer>", "line": 3, "text": "\ud800"})

    for text in (error.type, error.message, error.part, error.text):
        text.encode()
