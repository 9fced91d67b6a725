"""Standard controls: answers of known marks that every exercise of a kind gets, made from its reference solution.

Negative ones are what people hand in who hope that nobody looks: zeros, a copy of an input, the previous output, a
value that is wrong in one place. Positive ones do the same as the reference in another way. An exercise for which one
of the negative ones is a right answer (swapped operands of a sum) names it in `HiddenPart.right_here`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from autograder.exercises.quality import controls_schedules
from autograder.exercises.quality.controls_captured import AROUND_CAPTURED, SPOILT
from autograder.exercises.registry import find, hidden_part
from autograder.host.exercise import REFERENCE, Control, Exercise, HiddenPart, Kind

_AROUND = """
{reference}

_right, _last = {entry}, []

def {entry}(*args, **kwargs):
{body}
"""


def controls(exercise_id: str) -> tuple[Control, ...]:
    """Return answers of known marks, the standard ones of its kind among them; none in a student's installation."""
    part = hidden_part(exercise_id)
    return all_controls(find(exercise_id), part) if part else ()


def all_controls(exercise: Exercise, part: HiddenPart) -> tuple[Control, ...]:
    """The exercise's own controls and the standard ones of its kind."""
    own = {control.name: control for control in part.controls}
    standard = _standard(exercise, own[REFERENCE].answer) if REFERENCE in own else ()
    return (*own.values(), *(c for c in standard if c.name not in own and c.name not in part.right_here))


def _standard(exercise: Exercise, reference: str) -> tuple[Control, ...]:
    table = _TABLES[exercise.kind]
    around = {Kind.MODULE: _AROUND_MODULE, Kind.CAPTURED: AROUND_CAPTURED}.get(exercise.kind, _AROUND)
    entry = exercise.entry_point
    controls = [Control("empty answer", f"def {entry}(*args, **kwargs):\n    pass\n", 0)]
    for name, (body, rule) in table.items():
        text = around.format(reference=reference, entry=entry, body=body)
        controls.append(rule(name, text, exercise.points))
    return tuple(controls)


def _worthless(name: str, text: str, points: float) -> Control:
    return Control(name, text, 0)


def _imperfect(name: str, text: str, points: float) -> Control:
    return Control(name, text, points, below=True)


def _perfect(name: str, text: str, points: float) -> Control:
    return Control(name, text, points)


Rule = Callable[[str, str, float], Control]


def _outputs(change: str) -> str:
    """The body of a function that spoils the list of the reference's outputs."""
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
_CALLABLE: dict[str, tuple[str, Rule]] = {
    "zeros": (_outputs("outputs = [torch.zeros_like(o) for o in outputs]"), _worthless),
    "ones": (_outputs("outputs = [torch.ones_like(o) for o in outputs]"), _worthless),
    "copy of an input": (_outputs("outputs = [tensors[0].clone() for o in outputs]"), _worthless),
    "previous output": (
        _outputs(
            "_last.append(outputs); outputs = _last[-2] if len(_last) > 1 else [torch.zeros_like(o) for o in outputs]"
        ),
        _worthless,
    ),
    "first output, for ever": (_outputs("_last.append(outputs); outputs = _last[0]"), _imperfect),
    "wrong in the first output only": (_outputs("outputs[0] = outputs[0] * 1.01"), _worthless),
    "wrong in the last output only": (_outputs("outputs[-1] = outputs[-1] * 1.01"), _worthless),
    "wrong in one element": (
        _outputs("outputs[0] = outputs[0].clone(); outputs[0].reshape(-1)[-1:] += 0.01"),
        _imperfect,
    ),
    "NaN": (_outputs("outputs[0] = outputs[0] * float('nan')"), _worthless),
    "one precision lower": (
        _outputs(f"outputs = [o.to({_LOWER}.get(o.dtype, o.dtype)).to(o.dtype) for o in outputs]"),
        _worthless,
    ),
    "scalar": (_outputs("outputs[0] = outputs[0].sum()"), _worthless),
    "one dimension more": (_outputs("outputs = [o[None] for o in outputs]"), _worthless),
    "another dtype": (_outputs("outputs = [o.to(torch.complex64) for o in outputs]"), _worthless),
    "one output more": (_outputs("several = True; outputs = [*outputs, outputs[0]]"), _worthless),
    "without a gradient": (_outputs("outputs = [o.detach() for o in outputs]"), _imperfect),
    "swapped operands": ("    return _right(*args[1::-1], *args[2:], **kwargs)", _imperfect),
    "writes into an input": (_outputs("tensors[0].detach().mul_(2)"), _imperfect),
    "in double precision, rounded": (
        "    import torch\n"
        "    def double(a):\n"
        "        return a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a\n"
        "    dtype = next(a.dtype for a in args if isinstance(a, torch.Tensor) and a.is_floating_point())\n"
        "    result = _right(*map(double, args), **{k: double(a) for k, a in kwargs.items()})\n"
        "    if isinstance(result, (tuple, list)):\n"
        "        return tuple(r.to(dtype) for r in result)\n"
        "    return result.to(dtype)",
        _perfect,
    ),
}

_EMPTIED = (
    "    def emptied(value):\n"
    "        if isinstance(value, dict):\n"
    "            return {k: emptied(v) for k, v in value.items()}\n"
    "        return type(value)()\n"
    "    return emptied(_right(*args, **kwargs))"
)
_SPOILT = (
    "    def spoilt(value):\n"
    "        if isinstance(value, dict):\n"
    "            return {k: spoilt(v) if i == 0 else v for i, (k, v) in enumerate(value.items())}\n"
    "        if isinstance(value, list):\n"
    "            return value[1:] or [0]\n"
    "        return not value if isinstance(value, bool) else value + type(value)(1)\n"
    "    return spoilt(_right(*args, **kwargs))"
)
_VALUE: dict[str, tuple[str, Rule]] = {
    "empty values": (_EMPTIED, _worthless),
    "copy of the question": ("    return args[0]", _worthless),
    "nothing": ("    return None", _worthless),
    "text": ("    return str(_right(*args, **kwargs))", _worthless),
    "previous answer": ("    _last.append(_right(*args, **kwargs))\n    return _last[-2:][0]", _imperfect),
    "wrong in the first entry only": (_SPOILT, _imperfect),
    "an equal copy": ("    import json\n    return json.loads(json.dumps(_right(*args, **kwargs)))", _perfect),
}


def _graph(change: str) -> str:
    """The body of a pass that spoils the graph which the reference returns; ``fused`` are the course's operators."""
    return (
        "    result = _right(*args, **kwargs)\n"
        "    result = getattr(result, 'graph_module', result)\n"
        "    graph = result.graph\n"
        "    output = next(n for n in graph.nodes if n.op == 'output')\n"
        "    fused = [n for n in graph.nodes if 'course_lib' in str(n.target)]\n"
        f"    {change}\n"
        "    result.recompile()\n"
        "    return result"
    )


def _appended(call: str) -> str:
    """Every tensor that the program returns goes through one more call."""
    return _graph(
        "for n in output.all_input_nodes:\n"
        "        with graph.inserting_before(output):\n"
        f"            new = {call}\n"
        "        output.replace_input_with(n, new)"
    )


_GRAPH: dict[str, tuple[str, Rule]] = {
    "unchanged": ("    return args[0]", _worthless),
    "torch.compile": ("    import torch\n    return torch.compile(args[0])", _worthless),
    "previous graph": ("    _last.append(_right(*args, **kwargs))\n    return _last[-2:][0]", _imperfect),
    "input as output": (
        _graph("output.args = (next(n for n in graph.nodes if n.op == 'placeholder'),)"),
        _worthless,
    ),
    "NaN": (_appended("graph.call_method('mul', (n, float('nan')))"), _worthless),
    "off by one in a hundred": (_appended("graph.call_method('mul', (n, 1.01))"), _worthless),
    "swapped operands": (_graph("for n in fused: n.args = (*n.args[1::-1], *n.args[2:])"), _worthless),
    "one precision lower": (
        _graph(
            "import torch\n"
            "    for n in fused:\n"
            "        with graph.inserting_after(n):\n"
            "            low = graph.call_method('half', (n,))\n"
            "        with graph.inserting_after(low):\n"
            "            back = graph.call_method('to', (low, torch.float32))\n"
            "        n.replace_all_uses_with(back, delete_user_cb=lambda user: user is not low)"
        ),
        _worthless,
    ),
    "fused call beside the program": (
        "    import copy\n"
        "    before = copy.deepcopy(args[0])\n"
        "    fused = [n for n in _right(*args, **kwargs).graph.nodes if 'course_lib' in str(n.target)]\n"
        "    inputs = [n for n in before.graph.nodes if n.op == 'placeholder']\n"
        "    with before.graph.inserting_after(inputs[-1]):\n"
        "        for n in fused:\n"
        "            before.graph.call_function(n.target, (inputs[0],) * len(n.args))\n"
        "    before.recompile()\n"
        "    return before",
        _worthless,
    ),
    "written to a copy": (
        "    import copy\n    return _right(copy.deepcopy(args[0]), *args[1:], **kwargs)",
        _perfect,
    ),
}


def _inputs(change: str) -> str:
    """The body of a function that replaces every tensor ``t`` among the inputs that the reference returns."""
    return (
        "    import torch\n"
        "    def changed(value):\n"
        "        if isinstance(value, (list, tuple)):\n"
        "            return type(value)(changed(v) for v in value)\n"
        "        if isinstance(value, dict):\n"
        "            return {k: changed(v) for k, v in value.items()}\n"
        f"        return ({change}) if isinstance(value, torch.Tensor) else value\n"
        "    return changed(_right(*args, **kwargs))"
    )


_COUNTEREXAMPLE: dict[str, tuple[str, Rule]] = {
    "nothing": ("    return None", _worthless),
    "copy of the question": ("    return args[0]", _worthless),
    "no input": ("    return ()", _worthless),
    "text": ("    return str(_right(*args, **kwargs))", _worthless),
    "zeros": (_inputs("torch.zeros_like(value)"), _imperfect),
    "NaN": (_inputs("torch.full_like(value, torch.nan)"), _worthless),
    "infinite": (_inputs("torch.full_like(value, torch.inf)"), _worthless),
    "enormous tensors": (_inputs("torch.ones(1 << 20)"), _worthless),
    "no elements": (_inputs("value[:0]"), _imperfect),
    "a clone": (_inputs("value.clone()"), _perfect),
}

_AROUND_MODULE = """
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
# A module that computes nothing may still have the right parameters, which is worth something.
_MODULE: dict[str, tuple[str, Rule]] = {
    **{
        name: (textwrap.indent(body, "    "), _imperfect)
        for name, (body, rule) in _CALLABLE.items()
        if rule is not _perfect and name != "swapped operands"
    },
    "a clone": (textwrap.indent(_outputs("outputs = [o.clone() for o in outputs]"), "    "), _perfect),
}

_ARCHIVE: dict[str, tuple[str, Rule]] = {
    "nothing": ("    return None", _worthless),
    "a module that does nothing": ("    import torch\n    return torch.nn.Identity()", _worthless),
}

_SCHEDULE: dict[str, tuple[str, Rule]] = {
    **{name: (body, _worthless) for name, body in controls_schedules.BESIDE.items()},
    **{name: (body, _perfect) for name, body in controls_schedules.SAME.items()},
}

_TABLES: dict[Kind, dict[str, tuple[str, Rule]]] = {
    Kind.ANALYSIS: {name: _VALUE[name] for name in ("nothing", "previous answer", "copy of the question")},
    Kind.ARCHIVE: _ARCHIVE,
    Kind.CALLABLE: _CALLABLE,
    Kind.CAPTURED: {name: _CALLABLE[name] for name in SPOILT},
    Kind.COUNTEREXAMPLE: _COUNTEREXAMPLE,
    Kind.GRAPH: _GRAPH,
    Kind.MODULE: _MODULE,
    Kind.SCHEDULE: _SCHEDULE,
    Kind.VALUE: _VALUE,
}
