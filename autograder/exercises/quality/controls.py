"""Standard controls: answers of known marks that every exercise of a kind gets, made from its reference solution.

Controls that lose points do not solve the exercise: they return zeros, a copy of an input, the previous output, or a
value that is wrong in one place. The others compute the reference's result in another way. If a change is a right
answer to an exercise, such as swapped operands of a sum, its `HiddenPart.right_here` names it.
"""

from autograder.exercises.quality import graph_changes, kernel_changes, tensor_changes
from autograder.exercises.quality.tensor_changes import Change, Worth
from autograder.exercises.registry import find, hidden_part
from autograder.host.exercise import REFERENCE, Control, Exercise, HiddenPart, Kind

_AROUND = """
{reference}

_right, _last = {entry}, []

def {entry}(*args, **kwargs):
{body}
"""


def controls(exercise_id: str) -> tuple[Control, ...]:
    """Return answers of known marks, including the standard ones of its kind; none in a student's installation."""
    part = hidden_part(exercise_id)
    return all_controls(find(exercise_id), part) if part else ()


def all_controls(exercise: Exercise, part: HiddenPart) -> tuple[Control, ...]:
    """Return the exercise's own controls and the standard ones of its kind."""
    own = {control.name: control for control in part.controls}
    standard = _standard(exercise, own[REFERENCE].answer) if REFERENCE in own else ()
    return (*own.values(), *(c for c in standard if c.name not in own and c.name not in part.right_here))


def _standard(exercise: Exercise, reference: str) -> tuple[Control, ...]:
    around, entry = _AROUND_KIND.get(exercise.kind, _AROUND), exercise.entry_point
    if exercise.kind is Kind.TRITON:
        return _of_kernels(exercise, reference)
    controls = [Control("empty answer", f"def {entry}(*args, **kwargs):\n    pass\n", 0)]
    for name, (body, worth) in _CHANGES[exercise.kind].items():
        text = around.format(reference=reference, entry=entry, body=body)
        controls.append(_worth(exercise, name, text, worth))
    return tuple(controls)


def _of_kernels(exercise: Exercise, reference: str) -> tuple[Control, ...]:
    """Return the standard controls of kernels, whose text allows no function around the reference."""
    empty = Control("empty answer", f"def {exercise.entry_point}(*args, **kwargs):\n    pass\n", 0)
    changed = kernel_changes.changed(reference)
    return (empty, *(_worth(exercise, name, text, worth) for name, (text, worth) in changed.items()))


def _worth(exercise: Exercise, name: str, text: str, worth: Worth) -> Control:
    marks = 0 if worth is Worth.NOTHING else exercise.points
    return Control(name, text, marks, below=worth is Worth.LESS)


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
_VALUE: dict[str, Change] = {
    "empty values": (_EMPTIED, Worth.NOTHING),
    "copy of the question": ("    return args[0]", Worth.NOTHING),
    "nothing": ("    return None", Worth.NOTHING),
    "text": ("    return str(_right(*args, **kwargs))", Worth.NOTHING),
    "previous answer": ("    _last.append(_right(*args, **kwargs))\n    return _last[-2:][0]", Worth.LESS),
    "wrong in the first entry only": (_SPOILT, Worth.LESS),
    "an equal copy": ("    import copy\n    return copy.deepcopy(_right(*args, **kwargs))", Worth.FULL),
}


def _inputs(change: str) -> str:
    """Return the body of a function that replaces every tensor `value` among the inputs that the reference returns."""
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


_COUNTEREXAMPLE: dict[str, Change] = {
    "nothing": ("    return None", Worth.NOTHING),
    "copy of the question": ("    return args[0]", Worth.NOTHING),
    "no input": ("    return ()", Worth.NOTHING),
    "text": ("    return str(_right(*args, **kwargs))", Worth.NOTHING),
    "zeros": (_inputs("torch.zeros_like(value)"), Worth.LESS),
    "NaN": (_inputs("torch.full_like(value, torch.nan)"), Worth.NOTHING),
    "infinite": (_inputs("torch.full_like(value, torch.inf)"), Worth.NOTHING),
    "enormous tensors": (_inputs("torch.ones(1 << 20)"), Worth.NOTHING),
    "no elements": (_inputs("value[:0]"), Worth.LESS),
    "a clone": (_inputs("value.clone()"), Worth.FULL),
}

_CHANGES: dict[Kind, dict[str, Change]] = {
    Kind.ANALYSIS: {name: _VALUE[name] for name in ("nothing", "previous answer", "copy of the question")},
    Kind.ARCHIVE: graph_changes.ARCHIVE,
    Kind.CALLABLE: tensor_changes.CALLABLE,
    Kind.CAPTURED: tensor_changes.CAPTURED,
    Kind.COUNTEREXAMPLE: _COUNTEREXAMPLE,
    Kind.GRAPH: graph_changes.GRAPH,
    Kind.MODULE: tensor_changes.MODULE,
    Kind.SCHEDULE: graph_changes.SCHEDULE,
    Kind.VALUE: _VALUE,
}
_AROUND_KIND = {Kind.CAPTURED: tensor_changes.AROUND_CAPTURED, Kind.MODULE: tensor_changes.AROUND_MODULE}
