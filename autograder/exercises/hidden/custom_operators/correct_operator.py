"""Hidden checks and controls of exercise 11.6."""

from collections.abc import Iterator

import torch

from autograder.exercises.custom_operators.correct_operator import (
    APPEND,
    GATE,
    appended,
    appends,
    both,
    derived,
    filled,
    filled_formed,
    filled_shape,
    follows_sizes,
    gate_formed,
    gated,
    half_shape,
    only_result,
    right_values,
    silu_gate,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.quality.tensor_changes import CALLABLE
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, HiddenPart
from autograder.host.kinds.callable import CallableAnswer, Case

ANSWERS = Answers(__name__)
DTYPES = (torch.float64, torch.bfloat16)


def views(draw: Draw) -> Iterator[Case]:
    """Return inputs of the gate with strides of their own: transposed, permuted, expanded, every second column."""
    yield Case((draw.normal(8, 5).t(),), label="for a transposed x")
    yield Case((draw.normal(6, 3, 4).permute(2, 1, 0),), label="for a permuted x")
    yield Case((draw.normal(6).expand(4, 6),), label="for an expanded x")
    yield Case((draw.normal(3, 16)[:, ::2],), label="for every second column of a matrix")


def rows_with_strides(draw: Draw) -> Iterator[Case]:
    """Return rows for the cache that are transposed or expanded."""
    yield Case((draw.normal(6, 4), draw.normal(4, 2).t(), draw.integer(0, 4)), label="for transposed rows")
    yield Case((draw.normal(7, 3), draw.normal(3).expand(4, 3), draw.integer(0, 3)), label="for expanded rows")


def other_gate_sizes(draw: Draw) -> Iterator[Case]:
    """Return the call that is shown with symbols, and one of other sizes."""
    yield Case((draw.normal(3, 4, 6),))
    sizes = draw.integer(5, 9), draw.integer(10, 14), 2 * draw.integer(8, 20)
    yield Case((draw.normal(*sizes),), label=f"for x of shape {sizes}")


def other_cache_sizes(draw: Draw) -> Iterator[Case]:
    """Return the call that is shown with symbols, and one of other sizes at the same place."""
    at = draw.integer(2, 4)
    yield Case((draw.normal(9, 5), draw.normal(3, 5), at))
    columns = draw.integer(7, 20)
    label = f"for 6 rows at {at} of a cache of 20 × {columns}"
    yield Case((draw.normal(20, columns), draw.normal(6, columns), at), label=label)


def in_other_dtypes(answer: CallableAnswer, draw: Draw) -> None:
    """Check values, and the dtype on fake tensors, of both operators in fp64 and bf16."""
    for dtype in DTYPES:
        for name, formula, cases in (
            (GATE, silu_gate, gated((3, 10), dtype=dtype)),
            (APPEND, filled, appended((6, 4, 2, 3), dtype=dtype)),
        ):
            right_values(name, formula, cases)(answer, draw)
            for case in cases(draw):
                found = only_result(answer.function(f"dtypes of {name}"), case).dtype
                if found != dtype:
                    raise CheckFailedError(
                        f"On fake tensors of {str(dtype).removeprefix('torch.')} the result has dtype "
                        f"{str(found).removeprefix('torch.')}. x.new_empty takes the dtype of x, torch.empty does not."
                    )


EDGES = appended((5, 3, 5, 0), (5, 3, 1, 4), (4, 1, 2, 0), (6, 3, 0, 2))
HIDDEN = HiddenPart(
    checks=(
        Check(
            "silu_gate: odd sizes and ranks",
            "odd sizes",
            0.5,
            right_values(GATE, silu_gate, gated((2,), (1, 2), (3, 254), (2, 1, 3, 6), (0, 4))),
        ),
        Check(
            "silu_gate: gradients of views and other ranks",
            "gradients",
            1,
            both(derived(gated((6,), (2, 3, 4))), derived(views)),
        ),
        Check(
            "silu_gate: values and form for views",
            "declared form",
            1,
            both(right_values(GATE, silu_gate, views), gate_formed(views)),
        ),
        Check("silu_gate: sizes that are symbols", "symbols", 0.5, follows_sizes(GATE, half_shape, other_gate_sizes)),
        Check(
            "append_rows: sizes that are symbols",
            "symbols",
            0.5,
            follows_sizes(APPEND, filled_shape, other_cache_sizes),
        ),
        Check(
            "append_rows: first, last and all rows, and views",
            "odd sizes",
            1,
            both(appends(EDGES), appends(rows_with_strides), filled_formed(rows_with_strides)),
        ),
        Check("both in other dtypes", "other dtypes", 0.5, in_other_dtypes),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.file("decorators", 12),
        ANSWERS.file("the dispatcher's library", 12),
        ANSWERS.file("autograd in backward", 12),
        ANSWERS.file("an autograd function", 0),
        ANSWERS.edited(
            "forms by running the kernels",
            12,
            ("register_fake(lambda x: x.new_empty(*x.shape[:-1], x.shape[-1] // 2))", "register_fake(silu_gate)"),
        ),
        ANSWERS.edited(
            "forms by empty",
            12,
            (
                "x.new_empty(*x.shape[:-1], x.shape[-1] // 2)",
                "torch.empty(x.shape[:-1] + (x.shape[-1] // 2,), dtype=x.dtype, device=x.device)",
            ),
        ),
        ANSWERS.edited(
            "imports in one line, and refusals",
            12,
            ("def silu_gate(x", "from typing import Any, List\nimport torch, math\n\ndef silu_gate(x"),
            ("def keep_gate(ctx, inputs, output)", "def keep_gate(ctx: Any, inputs: Any, output: Any) -> None"),
            (
                "gate, value = x.chunk(2, -1)\n    return",
                "torch._check(x.shape[-1] % 2 == 0, lambda: 'an odd width')\n    if x.dim() == 0:\n"
                "        raise TypeError('a number')\n    gate, value = x.chunk(2, -1)\n    return",
            ),
        ),
        ANSWERS.edited("a copy by cat", 12, ("cache[:end].clone()", "torch.cat([cache[:at], rows])")),
        ANSWERS.edited(
            "copied into a slice", 12, ("cache[at:end] = rows", "cache.narrow(0, at, rows.shape[0]).copy_(rows)")
        ),
        ANSWERS.edited(
            "halves by index",
            12,
            (
                "gate, value = x.chunk(2, -1)\n    return",
                "n = x.shape[-1] // 2\n    gate, value = (x[..., :n], x[..., n:])\n    return",
            ),
        ),
        ANSWERS.edited(
            "filled into empty memory",
            12,
            (
                "return (F.silu(gate) * value).contiguous()",
                "return torch.mul(F.silu(gate), value, out=x.new_empty(gate.shape))",
            ),
        ),
        ANSWERS.edited(
            "no derivative", 9, ("gate_operator.register_autograd(gate_backward, setup_context=keep_gate)\n", "")
        ),
        ANSWERS.edited(
            "no form of the gate",
            9,
            ("gate_operator.register_fake(lambda x: x.new_empty(*x.shape[:-1], x.shape[-1] // 2))\n", ""),
        ),
        ANSWERS.edited("no write declared", 7.2, ("('cache',)", "()")),
        ANSWERS.edited("both declared as written", 11, ("('cache',)", "('cache', 'rows')")),
        ANSWERS.edited("anything may be written", 11, ("('cache',)", "'unknown'")),
        ANSWERS.edited("a view of the cache", 8.5, ("cache[:end].clone()", "cache[:end]")),
        ANSWERS.file("a view that nobody refuses", 9.5),
        ANSWERS.edited("contiguous in place of clone", 8.5, ("cache[:end].clone()", "cache[:end].contiguous()")),
        ANSWERS.edited(
            "the cache copied first",
            9.5,
            ("cache[at:end] = rows", "cache = cache.clone()\n    cache[at:end] = rows"),
        ),
        ANSWERS.edited(
            "a filled part of other strides", 7.2, ("cache[:end].clone()", "cache[:end].t().contiguous().t().clone()")
        ),
        ANSWERS.edited(
            "writes while nothing is differentiated",
            7.2,
            ("F.silu(gate) * value", "F.silu(gate, inplace=not x.requires_grad) * value"),
        ),
        ANSWERS.edited("the gate in place", 5, ("F.silu(gate) * value", "F.silu(gate, inplace=True) * value")),
        ANSWERS.edited("strides of x", 7.2, ("(F.silu(gate) * value).contiguous()", "F.silu(gate) * value")),
        ANSWERS.edited(
            "form like x",
            7.2,
            ("x.new_empty(*x.shape[:-1], x.shape[-1] // 2)", "torch.empty_like(x.chunk(2, -1)[0])"),
        ),
        ANSWERS.edited("a size as a number", 11.5, ("x.shape[-1] // 2)", "int(x.shape[-1]) // 2)")),
        ANSWERS.edited("rank 2 alone", 7.2, ("*x.shape[:-1], x", "x.shape[0], x")),
        ANSWERS.edited("the form of x", 7.2, ("x.new_empty(*x.shape[:-1], x.shape[-1] // 2)", "torch.empty_like(x)")),
        ANSWERS.edited("form without the place", 7.2, ("at + rows.shape[0], cache", "rows.shape[0], cache")),
        ANSWERS.edited(
            "form in float32",
            12 - 0.5,
            ("cache.new_empty(at + rows.shape[0], cache.shape[1])", "torch.empty(at + rows.shape[0], cache.shape[1])"),
        ),
        ANSWERS.edited("the slope of sigmoid alone", 9, (" * (1 + gate * (1 - s))", "")),
        ANSWERS.edited(
            "halves of the gradient swapped",
            9,
            (
                "[g * value * s * (1 + gate * (1 - s)), g * gate * s]",
                "[g * gate * s, g * value * s * (1 + gate * (1 - s))]",
            ),
        ),
        ANSWERS.edited(
            "g forgotten",
            9,
            ("[g * value * s * (1 + gate * (1 - s)), g * gate * s]", "[value * s * (1 + gate * (1 - s)), gate * s]"),
        ),
        ANSWERS.edited("sigmoid for silu", 6, ("F.silu(gate) * value", "torch.sigmoid(gate) * value")),
        ANSWERS.edited("rows at the beginning", 9, ("cache[at:end] = rows", "cache[:rows.shape[0]] = rows")),
        ANSWERS.edited("another name", 7, ("lesson11::append_rows", "lesson11::append")),
        ANSWERS.file("plain functions", 0),
    ),
    right_here=dict.fromkeys(
        CALLABLE,
        "it changes the Python function, and the checks call the registered operators by their names",
    ),
)
