"""The host believes one reply to one request, and nothing else on the channel."""

import os
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from autograder.host.channel import AnswerRaisedError, Channel, MalformedAnswerError, WorkerGoneError
from autograder.protocol import Frame, FrameKind, receive_frame, send_frame, serialise


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), theirs


def serve(theirs, *replies):
    """Answer one request with what each function makes of it."""

    def run():
        request = receive_frame(theirs)
        for reply in replies:
            reply(request)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def result(theirs, nonce, kind=FrameKind.RESULT, body=None):
    send_frame(theirs, Frame(kind, nonce, serialise(body or {"value": 1})))


def ask(channel, seconds=5.0):
    return channel.request(FrameKind.CALL, serialise({"question": 1}), deadline_s=time.monotonic() + seconds)


def test_a_reply_with_the_right_number_is_believed(pair):
    channel, theirs = pair
    thread = serve(theirs, lambda r: result(theirs, r.nonce))
    assert ask(channel).body == {"value": 1}
    thread.join()


def test_an_answer_before_the_question_is_refused(pair):
    channel, theirs = pair
    result(theirs, 0)
    with pytest.raises(MalformedAnswerError, match="before it was asked"):
        ask(channel)


def test_a_second_answer_is_refused_when_the_next_question_is_due(pair):
    channel, theirs = pair
    thread = serve(theirs, lambda r: result(theirs, r.nonce), lambda r: result(theirs, r.nonce))
    ask(channel)
    thread.join()
    with pytest.raises(MalformedAnswerError, match="twice"):
        channel.expect_silence()


@pytest.mark.parametrize("kind", [FrameKind.READY, FrameKind.LOADED, FrameKind.CALL])
def test_a_reply_of_another_kind_is_refused(pair, kind):
    channel, theirs = pair
    thread = serve(theirs, lambda r: result(theirs, r.nonce, kind))
    with pytest.raises(MalformedAnswerError):
        ask(channel)
    thread.join()


def test_a_reply_to_another_question_is_refused(pair):
    channel, theirs = pair
    thread = serve(theirs, lambda r: result(theirs, r.nonce ^ 1))
    with pytest.raises(MalformedAnswerError, match="another question"):
        ask(channel)
    thread.join()


def test_numbers_of_questions_cannot_be_foreseen(pair):
    channel, theirs = pair
    seen = []
    for _ in range(8):
        thread = serve(theirs, lambda r: seen.append(r.nonce), lambda r: result(theirs, r.nonce))
        ask(channel)
        thread.join()
    assert len(set(seen)) == 8
    assert max(seen) > 2**56


def test_silence_ends_with_the_deadline_and_a_closed_channel_at_once(pair):
    channel, theirs = pair
    with pytest.raises(TimeoutError):
        ask(channel, 0.05)
    theirs.close()
    with pytest.raises(WorkerGoneError):
        ask(channel)


def test_facts_about_an_exception_are_taken_only_in_their_form(pair):
    channel, theirs = pair
    facts = {"type": "E" * 1000, "message": ["no", "text"], "part": "<answer x>", "line": "<script>", "text": "x" * 999}
    facts["said_to_student"] = "yes"
    thread = serve(theirs, lambda r: result(theirs, r.nonce, FrameKind.RAISED, facts))
    with pytest.raises(AnswerRaisedError) as raised:
        ask(channel)
    thread.join()
    error = raised.value
    assert (len(error.type), error.message, error.part, error.line, len(error.text)) == (100, "", "<answer x>", 0, 200)
    assert not error.said_to_student


def test_descriptors_that_a_worker_sends_never_arrive(pair):
    channel, theirs = pair
    memory = os.memfd_create("gift")
    payload = serialise({"value": 1})
    before = len(list(Path("/proc/self/fd").iterdir()))
    thread = serve(theirs, lambda r: send_frame(theirs, Frame(FrameKind.RESULT, r.nonce, payload, (memory,))))
    ask(channel)
    thread.join()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    os.close(memory)


def test_an_oversized_reply_is_refused_before_it_is_read(pair):
    channel, theirs = pair
    thread = serve(theirs, lambda r: theirs.sendall(struct.pack("<4sB3xQQ", b"FUS1", 5, r.nonce, 2**40)))
    with pytest.raises(MalformedAnswerError, match="at most"):
        ask(channel)
    thread.join()
