"""A copied function is told by its instructions, and a function of one's own is not."""

import inspect
import os
import textwrap
from pathlib import Path

import pytest
import torch
import torch._refs
from torch import fx
from torch.nn import functional as F

from autograder.worker.copied_functions import copies_of
from autograder.worker.rewrites_of_torch import SITE

PLACES = ((Path(F.__file__), "multi_head_attention_forward"),)
TEXT = inspect.getsource(F.multi_head_attention_forward)


def defined(text):
    space = dict(vars(F))
    exec(text, space)
    return space["multi_head_attention_forward"].__code__


def without_checks(text):
    """Return the text without its first branch and its docstring."""
    start, end = text.index("    tens_ops = ("), text.index("    is_batched =")
    head = text[: text.index('    r"""')]
    return head + text[end:] if start < end else text


@pytest.mark.parametrize(
    "changed",
    [
        lambda text: text,
        lambda text: text.replace("embed_dim", "width").replace("head_dim", "size"),
        lambda text: text.replace('    r"""', '    r""" Mine. '),
        without_checks,
    ],
)
def test_a_copy_is_told_also_with_other_names_and_without_a_part(changed):
    code = defined(changed(TEXT))

    assert code.co_filename != F.__file__
    assert copies_of(PLACES).original(code, SITE) == "multi_head_attention_forward"


@pytest.mark.parametrize("inside", [False, True], ids=["of the module", "of another function"])
def test_a_copy_is_told_wherever_the_names_that_it_reads_were_imported(inside):
    original = inspect.unwrap(torch._refs.nn.functional.gelu)
    source = inspect.getsource(original)
    text = source[source.index("def gelu") :].replace("TensorLikeType", "object")
    if inside:
        text = f"def outer(torch, math):\n{textwrap.indent(text, '    ')}\n    return gelu\ngelu = outer(None, None)"
    space = {}
    exec(text, space)

    places = ((Path(original.__code__.co_filename), ""),)
    assert copies_of(places).original(space["gelu"].__code__, SITE) == "gelu"


def test_functions_of_other_names_and_functions_of_ones_own_are_no_copies():
    assert not copies_of(PLACES).original(F.interpolate.__code__, SITE)
    assert not copies_of(PLACES).original(fx.Tracer.trace.__code__, SITE)
    assert not copies_of(((Path("/nowhere.py"), ""),)).original(defined(TEXT), SITE)


def test_a_class_with_usual_methods_is_no_copy_of_a_class():
    text = """
class Scaled(torch.nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor
"""
    (body,) = (part for part in compile(text, "<answer>", "exec").co_consts if inspect.iscode(part))
    places = ((Path(torch.jit._trace.__file__), "ONNXTracedModule"),)

    assert set(body.co_names) >= {"__init__", "forward", "Tensor"}
    assert not copies_of(places).original(body, SITE)


def test_a_copy_is_told_where_statements_stand_between_its_own():
    lines = TEXT.replace("    is_batched =", "    sorted(())\n    is_batched =", 1).replace(
        "    bsz, ", "    zip(())\n    bsz, ", 1
    )

    assert copies_of(PLACES).original(defined(lines), SITE) == "multi_head_attention_forward"


OTHER_FILES = (fx.graph.__file__, f"{SITE}no.py", torch._C.__file__)


@pytest.mark.parametrize(
    "names", [{"co_qualname": "step"}, {"co_qualname": "relu"}, *({"co_filename": each} for each in OTHER_FILES)]
)
def test_a_function_in_its_own_file_is_a_copy_under_another_name_or_file_only(names):
    own = F.multi_head_attention_forward.__code__

    assert not copies_of(PLACES).original(own, SITE)
    assert copies_of(PLACES).original(own.replace(**names), SITE) == "multi_head_attention_forward"


def test_a_file_of_the_answer_vouches_for_no_copy_by_a_path_that_leads_out_of_the_library(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(TEXT, encoding="utf-8")
    code = compile(TEXT, f"{SITE}{os.path.relpath(mine, SITE)}", "exec")
    code = next(each for each in code.co_consts if inspect.iscode(each))

    assert Path(code.co_filename).is_file()
    assert copies_of(PLACES).original(code, SITE) == "multi_head_attention_forward"
