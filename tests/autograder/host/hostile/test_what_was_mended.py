"""What attacks found and was mended, held in small: the hostile files try the same through a worker."""

import ast
import json
import socket
import struct
import time
import zipfile
from dataclasses import replace

import pytest
from torch import fx

from autograder.classroom.hand_in import read_hand_in
from autograder.classroom.platforms.upload_archive import NotebookExtractor
from autograder.classroom.submission import SubmissionError, has_too_many_entries, read_submission
from autograder.exercises import find
from autograder.exercises.answer_cells import answers_in
from autograder.host import grading
from autograder.host.artifacts import dead_calls
from autograder.host.artifacts.torchscript_archive import CodeRefusedError, rewritten_code
from autograder.host.artifacts.torchscript_pickles import PickleRefusedError, require_plain_pickle
from autograder.host.channel import AnswerRaisedError, Channel, MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError
from autograder.host.judge import _Grading
from autograder.host.session import AnswerFailedError, Session
from autograder.protocol import ProtocolError, parse
from autograder.protocol.requests.answers import Ask


def test_a_string_that_never_ends_is_read_in_time_that_grows_with_its_length():
    body = b'{"value": "' + b'\\"' * 1_900_000
    started_s = time.process_time()

    with pytest.raises(ProtocolError, match="not JSON"):
        parse(struct.pack("<I", len(body)) + body + struct.pack("<I", 0))

    assert time.process_time() - started_s < 5  # going back over it took time squared: hours


def test_a_text_too_long_to_be_a_stub_is_not_parsed(monkeypatch):
    monkeypatch.setattr(ast, "parse", lambda text: pytest.fail("the host parsed it"))

    assert not grading.stubs_in("x = 1\n" * 10_000).leave_unanswered("solve")


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


def _parsed(body: bytes):
    return parse(struct.pack("<I", len(body)) + body + struct.pack("<I", 0)).body


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16", "utf-32-be", "utf-8-sig"])
def test_a_body_is_utf_8_so_that_no_bracket_hides_from_who_counts_them(encoding):
    with pytest.raises(ProtocolError, match="not JSON"):
        _parsed('{"value": "\u0122"}'.encode(encoding))
    assert _parsed('{"value": "\u0122"}'.encode()) == {"value": "\u0122"}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 301, "-" + "9" * 4000])
def test_a_number_that_arithmetic_stumbles_over_does_not_cross(number):
    with pytest.raises(ProtocolError, match="not JSON"):
        _parsed(f'{{"value": [{number}]}}'.encode())
    assert _parsed(b'{"value": [-0.0, 1e308, %s]}' % (b"9" * 300)) == {"value": [-0.0, 1e308, int("9" * 300)]}


def test_a_byte_out_of_band_is_an_answer_that_nobody_asked_for_and_keeps_nobody_waiting():
    host, worker = socket.socketpair()
    channel = Channel(host)
    host.settimeout(30)  # as the request before has left it
    worker.send(b"!", socket.MSG_OOB)
    started_s = time.monotonic()

    with pytest.raises(MalformedAnswerError, match="before it was asked"):
        channel.expect_silence()

    assert time.monotonic() - started_s < 5


def test_a_call_is_dead_unless_the_output_or_a_write_in_place_needs_it():
    def program(x):
        first = x + 1
        first.mul_(2)
        second = x * 3
        second.exp()  # and so `second` is dead, too
        return x.sin()

    assert dead_calls(fx.symbolic_trace(program).graph) == ("mul", "exp")


def test_what_outputs_printed_is_no_entry_and_what_parsing_would_make_objects_of_is():
    commas = b"[1], " * 1_500_000

    assert not has_too_many_entries(b'{"text": "' + commas + b'", "more": "\\\\"}')
    assert has_too_many_entries(b'{"text": [' + commas + b"[]]}")
    assert has_too_many_entries(('{"text": "' + ",[" * 1_500_001 + '"}').encode("utf-16"))  # who knows what is text


def test_cells_of_one_id_are_joined_in_one_go_and_their_number_is_limited(tmp_path):
    cell = {"cell_type": "\ud800x", "source": "1", "metadata": {"nbgrader": {"grade_id": "04_read_a_graph"}}}

    answers, notes = answers_in({"cells": [cell] * 3})
    assert answers == {"04_read_a_graph": "1\n1\n1"}
    assert "".join(notes).isascii()  # and names no type that is none
    place = tmp_path / "n.ipynb"
    place.write_text(json.dumps({"cells": [cell] * 2_001}))
    with pytest.raises(SubmissionError, match="2,001 cells"):
        read_submission(place)


@pytest.mark.parametrize("names", [["b" * 300], ["/".join("d" * 3_000)], ["q", "q.ipynb/r"], ["q.ipynb/r", "q"]])
def test_a_name_in_an_archive_that_has_no_place_is_left_out_and_all_others_are_unpacked(names, tmp_path, caplog):
    for folder in ("from", "to"):
        (tmp_path / folder).mkdir()
    with zipfile.ZipFile(tmp_path / "from" / "class.zip", "w") as archive:
        for name in ("first_1_1_x", *names, "last_2_1_x"):
            archive.writestr(f"{name}.ipynb", "{}")
        archive.writestr("\x1b[2J.txt", "")

    NotebookExtractor().extract(str(tmp_path / "from"), str(tmp_path / "to"))

    assert {"first_1_1_x.ipynb", "last_2_1_x.ipynb"} <= {p.name for p in (tmp_path / "to").iterdir()}
    assert "has no place" in caplog.text
    assert "\x1b" not in caplog.text


def test_each_hand_in_is_asked_hidden_questions_of_its_own(tmp_path):
    place = tmp_path / "n.ipynb"
    place.write_text("{}")
    seeds = [read_hand_in("01", student, place).own_seed(7) for student in ("a", "b", "a")]
    place.write_text("{ }")
    again = read_hand_in("01", "a", place).own_seed(7)

    assert seeds[0] == seeds[2]  # grading anew gives the same marks
    assert len({*seeds, again, read_hand_in("01", "a", place).own_seed(8)}) == 4


def test_who_has_used_up_the_time_is_not_given_it_anew_in_the_next_check():
    session = Session(None, None, wall_s=5.0)  # no sandbox: nothing may be started
    session._starts, session._left_s = 1, -0.1

    with pytest.raises(AnswerFailedError, match="No time is left of the 5 s"):
        session.call_with(Ask(1), ())


def test_of_a_pickle_of_millions_of_opcodes_only_the_first_are_read():
    started_s = time.process_time()

    with pytest.raises(PickleRefusedError, match="more than 20,000 opcodes"):
        require_plain_pickle(b"\x80\x02" + b"N" * (8 << 20) + b".", {})

    assert time.process_time() - started_s < 2  # eight million took ten times as long, and a gigabyte


def test_classes_that_c_plus_plus_registers_are_none_of_an_archives_own():
    name = "__torch__.torch.classes.quantized"
    with pytest.raises(PickleRefusedError, match=r"torch\.classes"):
        require_plain_pickle(f"\x80\x02c{name}\nLinearPackedParamsBase\n.".encode("latin-1"), {})
    for code in (f"return {name}.LinearPackedParamsBase()", f"c = {name}"):
        with pytest.raises(CodeRefusedError, match=r"torch\.classes"):
            rewritten_code(f"def forward(self, x):\n  {code}\n")

    assert "__torch__.answer.Part" in rewritten_code("def forward(self, x):\n  return __torch__.answer.Part(x)\n")


def test_what_a_check_says_is_short_and_can_be_written_whatever_an_answer_put_into_it():
    def run(answer: object, draw: Draw) -> None:
        raise CheckFailedError("\ud800 does not belong there" * 100_000)

    check = Check("names", "names", 1.0, run)
    grading = _Grading(replace(find("04_read_a_graph"), checks=(check,)), seed=1)

    grading.run(check, None)

    assert len(grading.checks[0].message.encode()) <= 2_000
