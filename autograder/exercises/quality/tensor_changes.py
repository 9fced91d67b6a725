"""Standard controls for answers on tensors: the reference's result, changed as in cheating or by a common mistake."""

import textwrap
from enum import Enum


class Worth(Enum):
    """The points of an answer with a change."""

    NOTHING = "nothing"
    LESS = "less than all points"
    FULL = "all points"


Change = tuple[str, Worth]
"""The body of a function that replaces the reference's function (`_right` in the body), and the answer's points."""


def _outputs(change: str) -> str:
    """Return the body of a function that changes the list `outputs` of the reference."""
    return (
        "    import torch\n"
        "    tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)]\n"
        "    result = _right(*args, **kwargs)\n"
        "    several = isinstance(result, (tuple, list))\n"
        "    outputs = list(result) if several else [result]\n"
        f"    {change}\n"
        "    return tuple(outputs) if several else outputs[0]"
    )


_LOWER = "{torch.float64: torch.float32, torch.float32: torch.float16}"
CALLABLE: dict[str, Change] = {
    "zeros": (_outputs("outputs = [torch.zeros_like(o) for o in outputs]"), Worth.NOTHING),
    "ones": (_outputs("outputs = [torch.ones_like(o) for o in outputs]"), Worth.NOTHING),
    "copy of an input": (_outputs("outputs = [tensors[0].clone() for o in outputs]"), Worth.NOTHING),
    "previous output": (
        _outputs(
            "_last.append(outputs); outputs = _last[-2] if len(_last) > 1 else [torch.zeros_like(o) for o in outputs]"
        ),
        Worth.NOTHING,
    ),
    "first output, for ever": (_outputs("_last.append(outputs); outputs = _last[0]"), Worth.LESS),
    "wrong in the first output only": (_outputs("outputs[0] = outputs[0] * 1.01"), Worth.NOTHING),
    "wrong in the last output only": (_outputs("outputs[-1] = outputs[-1] * 1.01"), Worth.NOTHING),
    "wrong in one element": (
        _outputs("outputs[0] = outputs[0].clone(); outputs[0].reshape(-1)[-1:] += 0.01"),
        Worth.LESS,
    ),
    "NaN": (_outputs("outputs[0] = outputs[0] * float('nan')"), Worth.NOTHING),
    "one precision lower": (
        _outputs(f"outputs = [o.to({_LOWER}.get(o.dtype, o.dtype)).to(o.dtype) for o in outputs]"),
        Worth.NOTHING,
    ),
    "scalar": (_outputs("outputs[0] = outputs[0].sum()"), Worth.NOTHING),
    "one dimension more": (_outputs("outputs = [o[None] for o in outputs]"), Worth.NOTHING),
    "another dtype": (_outputs("outputs = [o.to(torch.int16) for o in outputs]"), Worth.NOTHING),
    "one output more": (_outputs("several = True; outputs = [*outputs, outputs[0]]"), Worth.NOTHING),
    "without a gradient": (_outputs("outputs = [o.detach() for o in outputs]"), Worth.LESS),
    "swapped operands": ("    return _right(*args[1::-1], *args[2:], **kwargs)", Worth.LESS),
    "writes into an input": (_outputs("tensors[0].detach().mul_(2)"), Worth.LESS),
    "in double precision, rounded": (
        "    import torch\n"
        "    def double(a):\n"
        "        return a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a\n"
        "    dtype = next(a.dtype for a in args if isinstance(a, torch.Tensor) and a.is_floating_point())\n"
        "    result = _right(*map(double, args), **{k: double(a) for k, a in kwargs.items()})\n"
        "    if isinstance(result, (tuple, list)):\n"
        "        return tuple(r.to(dtype) for r in result)\n"
        "    return result.to(dtype)",
        Worth.FULL,
    ),
}

AROUND_MODULE = """
{reference}

_base, _last = {entry}, []

def {entry}(*build, **options):
    module = _base(*build, **options)
    _right = module.forward

    def forward(*args, **kwargs):
{body}

    module.forward = forward
    return module
"""
"""Text around a change of a module; it replaces the module's forward."""
# A module that computes nothing may still get points for the right parameters.
MODULE: dict[str, Change] = {
    **{
        name: (textwrap.indent(body, "    "), Worth.LESS)
        for name, (body, worth) in CALLABLE.items()
        if worth is not Worth.FULL and name != "swapped operands"
    },
    "a clone": (textwrap.indent(_outputs("outputs = [o.clone() for o in outputs]"), "    "), Worth.FULL),
}

AROUND_CAPTURED = """
{reference}

_given, _last = {entry}, []

def _spoil(_right):
    def spoilt(*args, **kwargs):
        return _change(_right, args, kwargs)
    return spoilt

def _change(_right, args, kwargs):
{body}

def {entry}(*args, **kwargs):
    if args or kwargs:
        return _change(_given, args, kwargs)
    return {{name: _spoil(function) for name, function in _given().items()}}
"""
"""Text around a change of functions whose graphs are captured; it changes all functions in the same way."""

CAPTURED: dict[str, Change] = {
    name: CALLABLE[name]
    for name in ("zeros", "copy of an input", "wrong in the first output only", "NaN", "one precision lower")
}
