"""An answer is its parts run as one module, and its exceptions point at its lines."""

import inspect
import sys

import pytest

from autograder.worker.source import NoEntryPointError, describe, load


def test_parts_share_one_namespace_in_order():
    entry = load({"setup": "import math\nk = 2", "answer x": "def f(x):\n    return math.sqrt(x) * k"}, "f")
    assert entry(9) == 6


def test_a_missing_function_is_named():
    with pytest.raises(NoEntryPointError, match="`f`"):
        load({"answer x": "f = 3"}, "f")


def test_the_source_of_an_answer_can_be_inspected_as_in_a_file():
    entry = load({"answer x": "def f(x):\n    return x + 1\n"}, "f")
    assert inspect.getsource(entry) == "def f(x):\n    return x + 1\n"
    assert sys.modules["answer"].f is entry


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("def f():\n    x = 1\n    return x / 0\n", ("ZeroDivisionError", 3, "return x / 0")),
        ("def g():\n    return y\n\ndef f():\n    return g()\n", ("NameError", 2, "return y")),
        ("def f():\n    import json\n    json.loads('{')\n", ("JSONDecodeError", 3, "json.loads('{')")),
    ],
)
def test_an_exception_is_described_by_its_innermost_line_of_the_answer(text, facts):
    entry = load({"answer x": text}, "f")
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the cases name the type
        entry()
    found = describe(raised.value)
    assert (found.type, found.line, found.text) == facts
    assert found.part == "<answer x>"


def test_a_syntax_error_is_described_by_its_line():
    with pytest.raises(SyntaxError) as raised:
        load({"answer x": "a = 1\nb = (\n"}, "f")
    assert describe(raised.value).line == 2


def test_an_exception_whose_message_raises_is_described_all_the_same():
    class OddError(Exception):
        def __str__(self):
            raise RuntimeError

    assert describe(OddError()).message == "its message cannot be shown"


def test_annotations_are_those_of_a_notebook_and_not_text():
    entry = load({"answer x": "def f(x: int):\n    return x\n"}, "f")
    assert entry.__annotations__ == {"x": int}
