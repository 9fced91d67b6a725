"""Operators of an answer's own: their text is found, checked, and believed in nothing else."""

import time
from dataclasses import replace

import pytest

from autograder.host.artifacts.declared_operators import (
    OperatorRefusedError,
    checked_operators,
    kernel_text,
)
from autograder.protocol.requests.answers import OwnOperator
from course_lib.graph import from_data

TEXT = """import os
import triton
import triton.language as tl

BLOCK = tl.constexpr(4)
NAMES = [name for name in os.environ]


@triton.jit
def helper(x):
    return x + BLOCK


@triton.jit
def kernel(x_ptr, y_ptr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, helper(tl.load(x_ptr + at)))


def forward(x):
    y = torch.empty_like(x)
    kernel[(1,)](x, y)
    return y


def backward(grad_y):
    return forward(grad_y)


def optimise(gm):
    os.remove("anything")
    return gm
"""
END = OwnOperator("step::end", "forward", "backward", ("y",), (), ("x",))


def refused(declared, text=TEXT):
    with pytest.raises(OperatorRefusedError) as error:
        checked_operators(declared, {"answer": text})
    return str(error.value)


def test_what_launchers_need_stays_in_its_lines_and_nothing_else_is_there():
    (part,) = checked_operators([END], {"answer": TEXT}).kernels
    before, kept = TEXT.split("\n"), part.text.split("\n")
    for line in ("BLOCK = tl.constexpr(4)", "def helper(x):", "    y = torch.empty_like(x)", "def forward(x):"):
        assert kept.index(line) == before.index(line)
    assert "os" not in part.text
    assert "optimise" not in part.text


def test_a_graph_calls_it_by_a_name_that_no_other_operator_has():
    named_like_another = OwnOperator("aten::add", "forward", "backward", ("y",), (), ("x",))
    own = checked_operators([named_like_another], {"answer": TEXT})
    (name,) = own.stand_ins()
    nodes = [
        {"name": "x", "op": "placeholder", "target": "x", "args": [], "kwargs": {}},
        {"name": "end", "op": "call_function", "target": name, "args": [{"node": "x"}], "kwargs": {}},
        {"name": "output", "op": "output", "target": "output", "args": [{"node": "end"}], "kwargs": {}},
    ]
    module = from_data({"nodes": nodes, "modules": {}, "tensors": {}}, {}, own=own.stand_ins())
    assert name == "own.aten::add"
    with pytest.raises(AssertionError, match="the host runs no graph"):
        module(1)


@pytest.mark.parametrize(
    "name", ["step.end", "step::", "::end", "step::end::more", "step::e nd", "stép::end", "own::a.b", "step::end\n"]
)
def test_names_that_are_none_are_refused(name):
    assert 'expected "namespace::name"' in refused([OwnOperator(name, "forward", "backward", ("y",), (), ())])
    assert "have a name that is none" in refused([OwnOperator("step::end", name, "backward", ("y",), (), ())])
    assert "have a name that is none" in refused([OwnOperator("step::end", "forward", "backward", (name,), (), ())])


def test_one_name_for_two_is_refused():
    assert "two of its own operators are called `step::end`" in refused([replace(END, name="step::first"), END, END])


def test_launchers_that_the_text_does_not_have_are_refused():
    for launcher in ("kernel", "BLOCK", "os", "nothing"):
        declared = OwnOperator("step::end", "forward", launcher, ("y",), (), ("x",))
        assert f"the launcher `{launcher}` of an own operator is no function" in refused([declared])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("    y = torch.relu(x)", "uses `torch.relu`, which is not there in a launcher"),
        ("    y = globals()['torch']", "uses `globals`"),
        ("    y = x.clone()", "copies or converts outside of the kernel"),
        ("    y = optimise(x)", "uses `import os`"),
        ("    y = NAMES[0]", "neither a function nor a constant"),
    ],
)
def test_what_leaves_the_language_is_refused(line, told):
    text = TEXT.replace("    y = torch.empty_like(x)", line).replace('    os.remove("anything")', "    import os")
    said = refused([END], text)
    assert told in said or (told == "uses `import os`" and "`optimise`" in said)
    assert "whose kernels are refused" in said


def test_an_exercise_without_own_operators_refuses_them():
    with pytest.raises(OperatorRefusedError, match="operators of PyTorch and course_lib only"):
        checked_operators([END], None)


@pytest.mark.parametrize(
    "text",
    [
        TEXT + "\n" + "=".join(f"a{i}" for i in range(15_000)) + "=1\ndef forward(x):\n    return a1\n",
        TEXT + "\n" + "\n".join(f"a{i} = a{i + 1}" for i in range(8_000)) + "\nforward = a0\n",
        TEXT + "\nforward = " + "+".join(["1"] * 10_000),
        TEXT + "\ndef forward(x):\n    return '" + "x" * 100_000 + "'\n",
        TEXT + "#" * 300_000,
    ],
    ids=["one statement of many names", "a chain of names", "a deep sum", "a long text", "more than is read"],
)
def test_texts_without_end_are_refused_in_time(text):
    started = time.process_time()
    assert refused([END], text)
    assert time.process_time() - started < 10


def test_lines_are_counted_as_the_parser_counts_them():
    text = "A = '\x0c\u2028\x1c'\r\ndef forward(x):\r    return A\n"
    assert kernel_text(text, ["forward"]).split("\n")[1] == "def forward(x):"
