"""A copied function is told by its instructions, and a function of one's own is not."""

import inspect
from pathlib import Path

import pytest
import torch
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


def test_a_function_in_its_own_file_is_a_copy_under_another_name_only():
    own = F.multi_head_attention_forward.__code__

    assert not copies_of(PLACES).original(own, SITE)
    assert copies_of(PLACES).original(own.replace(co_qualname="step"), SITE) == "multi_head_attention_forward"
