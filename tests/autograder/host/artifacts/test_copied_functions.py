"""A copied function is found by its instructions, a function of one's own is not, and no text of an answer runs."""

import inspect
import textwrap
from pathlib import Path

import pytest
import torch
import torch._refs
from torch.nn import functional as F

from autograder.exercises import all_exercises, find
from autograder.exercises.quality.controls import controls
from autograder.host.artifacts.copied_functions import compiled, copied_functions
from autograder.host.exercise import REFERENCE
from tests.drawn import some

NAME = "multi_head_attention_forward"
PLACES = (f"torch.nn.functional:{NAME}",)
TEXT = inspect.getsource(F.multi_head_attention_forward)
ROOT = Path(__file__).parents[4]


def without_checks(text):
    """Return the text without its first branch and its docstring."""
    start, end = text.index("    tens_ops = ("), text.index("    is_batched =")
    head = text[: text.index('    r"""')]
    return head + text[end:] if start < end else text


def with_statements(text):
    text = text.replace("    is_batched =", "    sorted(())\n    is_batched =", 1)
    return text.replace("    bsz, ", "    zip(())\n    bsz, ", 1)


@pytest.mark.parametrize(
    "changed",
    [
        lambda text: text,
        lambda text: text.replace(NAME, "attend"),
        lambda text: text.replace("embed_dim", "width").replace("head_dim", "size"),
        lambda text: text.replace('    r"""', '    r""" Mine. '),
        lambda text: f"class Mine:\n    def outer(self):\n{textwrap.indent(text, '        ')}",
        without_checks,
        with_statements,
    ],
)
def test_a_copy_is_found_also_with_other_names_without_a_part_or_with_more(changed):
    (found,) = copied_functions(changed(TEXT), PLACES)

    assert found.original.endswith(f"nn/functional.py: {NAME}")
    assert found.original_text.startswith(f"def {NAME}(")
    assert found.text.strip().startswith("def ")
    assert "bsz" in found.text


def test_a_copy_is_found_wherever_the_names_that_it_reads_were_imported():
    source = inspect.getsource(inspect.unwrap(torch._refs.nn.functional.gelu))
    text = source[source.index("def gelu") :].replace("TensorLikeType", "object")
    inside = f"def outer(torch, math):\n{textwrap.indent(text, '    ')}\n    return gelu\n"

    for each in (text, inside):
        found = copied_functions(each, ("torch._refs",))
        assert [copy.original for copy in found] == ["nn/functional/__init__.py: gelu"]


@pytest.mark.parametrize(
    ("exercise_id", "file"),
    [("10_lower_regions", "backends/toy/registers.py"), ("11_replace_block_end", "fusion/surgery.py")],
)
def test_a_file_of_the_library_is_found_where_the_exercise_leaves_it_out(exercise_id, file):
    text = (ROOT / "course_lib" / file).read_text(encoding="utf-8")

    found = copied_functions(text, find(exercise_id).masked)

    assert {Path(file).name} == {Path(copy.original.partition(":")[0]).name for copy in found}


def test_other_functions_and_packages_as_a_whole_are_compared_with_nothing():
    assert not copied_functions(inspect.getsource(F.interpolate), PLACES)
    assert not copied_functions(TEXT, ("torch", "networkx", "nothing.at_all"))


@pytest.mark.parametrize(
    "text", ["def f(:", "(" * 5_000, "+".join(["1"] * 50_000), "x = '\ud800'\ndef f(): pass", "\0", "x = 10**10**8"]
)
def test_a_text_that_cannot_be_compiled_copies_nothing(text):
    assert copied_functions(text, PLACES) == ()


def test_no_text_of_an_answer_runs(tmp_path):
    mark = tmp_path / "ran"
    text = f"open({str(mark)!r}, 'w')\n@open({str(mark)!r}, 'w')\ndef f(x=open({str(mark)!r}, 'w')): pass\n"

    assert copied_functions(text, PLACES) == ()
    assert not mark.exists()


@pytest.mark.parametrize("exercise_id", some(all_exercises(), 12, name="answers without a copy"))
def test_no_reference_is_a_copy(exercise_id):
    exercise = find(exercise_id)
    text = next(each.answer for each in controls(exercise_id) if each.name == REFERENCE)

    assert copied_functions(text, (*exercise.masked, *exercise.ready_made)) == ()


def test_the_record_of_a_text_with_thousands_of_copies_is_short():
    code = inspect.unwrap(F.multi_head_attention_forward).__code__
    short = f"def {'f' * 1_000}():\n    {'; '.join(code.co_names)}\n"
    (found,) = copied_functions(short * 100, PLACES)
    assert len(found.function) <= 200

    whole = Path(torch._refs.__file__).read_text(encoding="utf-8")[:150_000].rpartition("\n@")[0]
    assert len(copied_functions(whole, ("torch._refs",))) == 10


NESTED = "".join(f"{' ' * i}try:\n{' ' * i} a\n{' ' * i}finally:\n" for i in range(14)) + f"{' ' * 14}b\n"
LONG = "def f():\n try:\n" + "  if a: return\n" * 300 + " finally:\n" + "  b\n" * 300


@pytest.mark.parametrize("text", [NESTED, LONG], ids=["nested", "many ways out"])
def test_the_code_of_a_text_is_no_longer_than_the_text_whatever_finally_it_has(text):
    waiting, size = [compiled(text)], 0
    for code in waiting:
        size += len(code.co_code)
        waiting += [each for each in code.co_consts if isinstance(each, type(code))]

    assert size < 10 * len(text)


def test_a_copy_with_a_finally_is_found():
    text = textwrap.dedent(inspect.getsource(torch.jit._trace.trace_module))
    assert "finally:" in text

    assert copied_functions(text, ("torch.jit._trace:trace_module",))
