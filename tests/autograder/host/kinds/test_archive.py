"""Answers that are TorchScript programs: scripted by the student's worker, checked by the host, run by a clean one."""

import contextlib
import io
import random
import struct
import time
import zipfile

import pytest
import torch

from autograder.host.artifacts.torchscript_archive import (
    ArchiveRefusedError,
    CodeRefusedError,
    checked_archive,
    rewritten_code,
)
from autograder.host.artifacts.torchscript_pickles import PickleRefusedError, require_plain_pickle
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.archive import ArchiveAnswer, groups, outside, require_few
from autograder.host.kinds.callable import Case
from autograder.host.sandbox import open_sandbox
from autograder.host.session import AnswerFailedError, Session, result_of
from autograder.protocol import Message
from autograder.protocol.requests.loads import ArchiveNode, DescribeArchive, LoadAnswer, Part
from autograder.worker.source import load

COUNTER = """
from typing import List
import torch
from torch import nn

class Counter(nn.Module):
    past: List[torch.Tensor]

    def __init__(self, width):
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.past = []

    def forward(self, x, scale: float = 1.0):
        self.past.append(x)
        return self.dense(x) * scale, len(self.past) * torch.ones(1)

def double_tanh(x):
    return torch.tanh(x * 2)

def reads_a_file(x):
    return torch.from_file("/etc/hostname", False, 1, dtype=torch.uint8)

def not_scriptable(x, **more):
    return x
"""
STATE = {"dense.weight": torch.randn(3, 3), "dense.bias": torch.randn(3)}


@pytest.fixture(scope="module")
def answer():
    load = LoadAnswer("archive", "Counter", (Part("answer x", COUNTER),))
    sandbox = open_sandbox()
    made = ArchiveAnswer(Session(sandbox, load, wall_s=30), Session(sandbox, None, wall_s=30))
    yield made
    made.student.close()
    made.clean.close()


def saved(function):
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(function), buffer)
    return buffer.getvalue()


def changed(archive, file, content):
    """The archive with other bytes in one of its files."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            new.writestr(name, content(old.read(name)) if name.endswith(file) else old.read(name))
    return result.getvalue()


def test_calls_on_one_load_share_state_and_the_weights_are_the_hosts(answer):
    archive = answer.module([3], STATE)
    x = torch.randn(2, 3)
    first, second = answer.run(archive, [Case((x,)), Case((x,), {"scale": 2.0})])
    expected = torch.nn.functional.linear(x, STATE["dense.weight"], STATE["dense.bias"])
    torch.testing.assert_close(first[0], expected)
    torch.testing.assert_close(second[0], 2 * expected)
    assert (first[1].item(), second[1].item()) == (1, 2)
    assert answer.run(archive, [Case((x,))])[0][1].item() == 1


def test_the_optimised_graph_says_what_lies_in_a_group(answer):
    nodes = answer.optimised(answer.function("double_tanh"), [Case((torch.randn(4),))])
    assert groups(nodes) == [("aten::mul", "aten::tanh")]
    assert list(outside(nodes)) == []


def test_a_program_that_asks_for_a_file_never_reaches_the_clean_worker(answer):
    with pytest.raises(CheckFailedError, match=r"a call of torch\.from_file"):
        answer.function("reads_a_file")


def test_what_cannot_be_scripted_is_the_students_error_with_the_compilers_words(answer):
    with pytest.raises(AnswerFailedError, match=r"torch\.jit\.script refuses it: .*variable number of arguments"):
        answer.function("not_scriptable")


def test_a_name_that_is_missing_is_said(answer):
    with pytest.raises(AnswerFailedError, match="no function `absent`"):
        answer.function("absent")


def test_a_program_that_fails_on_an_input_fails_the_check(answer):
    with pytest.raises(CheckFailedError, match="does not run with odd inputs"):
        answer.run(answer.module([3], STATE), [Case((torch.randn(2, 4),), label="with odd inputs")])


@pytest.mark.parametrize(
    "code",
    [
        "def f(x: Tensor) -> Tensor:\n  return torch.as_strided(x, [9], [1])",
        "def f(x: Tensor) -> Tensor:\n  return x.as_strided([9], [1])",
        "def f(x: Tensor) -> Tensor:\n  return ops.aten.set_(x, x)",
        "def f(x: Tensor) -> Tensor:\n  return ops.anything.at_all(x)",
        "def f(x: Tensor) -> Tensor:\n  return fork(g, x)",
        "def f(x: Tensor) -> Tensor:\n  t = torch\n  return t.saved(x)",
        "def f(x: Tensor) -> Tensor:\n  return (g)(x)(x)",
        "def f(x: Tensor) -> Tensor:\n  x.save('f')\n  return x",
        "def as_strided(x: Tensor) -> Tensor:\n  return x",
        "import os",
        "class A(__torch__.B):\n  pass",
        "@torch.add\ndef f(x: Tensor) -> Tensor:\n  return x",
        "def f(:",
        "x = 0x" + "f" * 5_000,  # too long to be printed
        "x = " + "+".join(["1"] * 900),
    ],
)
def test_code_that_calls_anything_else_is_refused(code):
    with pytest.raises(CodeRefusedError):
        rewritten_code(code)


def test_an_honest_archive_is_packed_anew_and_gives_the_same():
    def program(x):
        total = torch.zeros_like(x)
        for i in range(3):
            print("step", i)
            total = total + x * i if i != 1 else total - x
        return total

    x = torch.randn(4)
    loaded = torch.jit.load(io.BytesIO(checked_archive(saved(program))))
    torch.testing.assert_close(loaded(x), program(x))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("data.pkl", lambda old: b"cposix\nsystem\n(X\x02\x00\x00\x00idtR."),
        ("data.pkl", lambda old: old[:-5]),
        ("data.pkl", lambda old: b"\x80\x02)R."),
        ("constants.pkl", lambda old: b"not a pickle"),
        ("version", lambda old: b"three"),
        ("byteorder", lambda old: b"big"),
        ("__torch__.py", lambda old: old.replace(b"tanh", b"load_anything")),
        ("__torch__.py", lambda old: b"\xff\xfe"),
    ],
)
def test_an_archive_that_was_changed_is_refused(file, content):
    honest = saved(torch.jit.script(lambda_tanh))
    checked_archive(honest)
    with pytest.raises(ArchiveRefusedError):
        checked_archive(changed(honest, file, content))


def lambda_tanh(x):
    return torch.tanh(x)


def test_a_version_may_stand_in_either_place():
    def newer(x):
        return torch.nn.functional.gelu(x, approximate="tanh")

    loaded = torch.jit.load(io.BytesIO(checked_archive(saved(newer))))
    torch.testing.assert_close(loaded(torch.ones(2)), newer(torch.ones(2)))


def test_an_archive_that_reads_a_file_works_where_nobody_looks_and_is_refused_here(tmp_path):
    secret = tmp_path / "gradebook"
    secret.write_bytes(b"marks")
    text = f"def steal(x):\n    return torch.from_file({str(secret)!r}, False, 5, dtype=torch.uint8)\n"
    archive = saved(load({"answer x": f"import torch\n{text}"}, "steal"))
    unprotected = torch.jit.load(io.BytesIO(archive))
    assert bytes(unprotected(torch.ones(1)).tolist()) == b"marks"
    with pytest.raises(ArchiveRefusedError, match=r"a call of torch\.from_file"):
        checked_archive(archive)


class Table(torch.nn.Module):
    """State of a kind that is not accepted."""

    def __init__(self):
        super().__init__()
        self.seen: dict[str, int] = {"a": 1}

    def forward(self, x):
        return x * self.seen["a"]


def test_a_dict_for_state_is_refused_in_words():
    with pytest.raises(ArchiveRefusedError, match="a dict, or a list of lists, as an attribute"):
        checked_archive(saved(Table()))


def test_bytes_changed_anywhere_are_refused_or_give_an_archive_again():
    honest = saved(lambda_tanh)
    generator = random.Random(0)
    for _ in range(300):
        damaged = bytearray(honest)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        with contextlib.suppress(ArchiveRefusedError):
            again = checked_archive(bytes(damaged))
            assert checked_archive(again) == again


def test_pickles_changed_anywhere_are_refused_or_plain():
    honest, generator = tensor_pickle(3, 0, 3, 1), random.Random(0)
    for _ in range(2000):
        damaged = bytearray(honest)
        damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        with contextlib.suppress(PickleRefusedError):
            require_plain_pickle(bytes(damaged), {"0": bytes(12)})


def test_bytes_that_are_no_zip_and_files_that_do_not_belong_are_refused():
    with pytest.raises(ArchiveRefusedError, match="no readable zip"):
        checked_archive(b"PK\x03\x04 nonsense")
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    with pytest.raises(ArchiveRefusedError, match="too few files"):
        checked_archive(empty.getvalue())
    strange = io.BytesIO(saved(lambda_tanh))
    with zipfile.ZipFile(strange, "a") as archive:
        archive.writestr("archive/extra/producers.json", "{}")
    with pytest.raises(ArchiveRefusedError, match=r"extra/producers\.json"):
        checked_archive(strange.getvalue())


def test_a_zip_that_unpacks_to_more_than_is_accepted_is_refused():
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", b"\0" * (9 << 20))
    with pytest.raises(ArchiveRefusedError, match="too large"):
        checked_archive(bomb.getvalue())


def test_the_code_of_all_files_of_an_archive_has_one_limit():
    long = io.BytesIO(saved(lambda_tanh))
    with zipfile.ZipFile(long, "a") as archive:
        for number in range(3):
            archive.writestr(f"archive/code/__torch__/more_{number}.py", "a.b()\n" * 2_500)
    with pytest.raises(ArchiveRefusedError, match="bytes of code; at most 40,000"):
        checked_archive(long.getvalue())


def tensor_pickle(count, offset, shape, stride):
    """A pickle of one float tensor, as torch.jit.save writes it."""
    text = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK" + bytes([count])
    numbers = b"K" + bytes([offset]) + b"(K" + bytes([shape]) + b"t(K" + bytes([stride]) + b"t"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + text + b"tQ" + numbers + b"\x89}tR."


def test_a_tensor_has_to_lie_inside_its_storage():
    storage = {"0": bytes(12)}
    require_plain_pickle(tensor_pickle(3, 0, 3, 1), storage)
    for odd in ((3, 0, 4, 1), (3, 1, 3, 1), (3, 0, 3, 2), (4, 0, 3, 1)):
        with pytest.raises(PickleRefusedError):
            require_plain_pickle(tensor_pickle(*odd), storage)


def test_tensors_of_a_large_storage_are_checked_without_copies_of_it():
    count = 2 << 20
    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    arguments = (
        b"("
        + storage
        + b"J"
        + struct.pack("<i", count)
        + b"tQK\x01J"
        + struct.pack("<i", count - 1)
        + b"\x85K\x01\x85t"
    )
    once = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\x01" + arguments + b"q\x02"

    started_s = time.process_time()
    require_plain_pickle(once + b"h\x01h\x02R" * 6_000 + b".", {"0": bytes(4 * count)})

    assert time.process_time() - started_s < 1


def described(nodes):
    return result_of(DescribeArchive(()), Message({"nodes": nodes})).body.nodes


def test_a_description_of_another_form_is_malformed():
    rest = {"blocks": [], "subgraph": [], "tensors": True, "reads": False}
    good = [{"kind": "aten::add", **rest}]
    assert described(good) == (ArchiveNode("aten::add"),)
    for bad in (
        None,
        [1],
        [{"kind": 1, **rest}],
        [{"kind": "x"}],
    ):
        with pytest.raises(MalformedAnswerError):
            described(bad)
    with pytest.raises(MalformedAnswerError):
        require_few(described([{"kind": "x", **rest, "blocks": [good * 10], "subgraph": good}] * 500))


def test_groups_are_found_inside_blocks_and_differentiable_graphs():
    group = ArchiveNode("prim::TensorExprGroup", subgraph=(ArchiveNode("prim::Constant"), ArchiveNode("aten::exp")))
    graph = (
        ArchiveNode("aten::mm"),
        ArchiveNode("prim::If", blocks=((group,), (ArchiveNode("aten::exp"),))),
        ArchiveNode("prim::DifferentiableGraph", subgraph=(group, ArchiveNode("aten::relu"))),
    )
    assert groups(graph) == [("aten::exp",), ("aten::exp",)]
    assert list(outside(graph)) == ["aten::mm", "aten::exp", "aten::relu"]
