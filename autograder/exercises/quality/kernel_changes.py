"""Changes of the text of Triton kernels, for the standard controls: every load or store of a reference is edited."""

import ast
from collections.abc import Callable

from autograder.exercises.quality.tensor_changes import Worth

Edit = Callable[[ast.Call, str], None]
"""Changes a call in place; the text is "load" or "store"."""


def changed(reference: str) -> dict[str, tuple[str, Worth]]:
    """Return the changed texts by the names of the controls, and what each is worth."""
    return {name: (_edited(reference, edit), worth) for name, (edit, worth) in _EDITS.items()}


def _edited(reference: str, edit: Edit) -> str:
    tree = ast.parse(reference)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("tl.load", "tl.store"):
            edit(node, ast.unparse(node.func).removeprefix("tl."))
    return f"{ast.unparse(tree)}\n"


def _stored(change: str) -> Edit:
    def edit(call: ast.Call, name: str) -> None:
        if name == "store":
            call.args[1] = ast.parse(change.format(ast.unparse(call.args[1])), mode="eval").body

    return edit


def _without_masks(call: ast.Call, name: str) -> None:
    call.keywords = [each for each in call.keywords if each.arg not in ("mask", "other")]
    del call.args[1 if name == "load" else 2 :]  # a mask may also be given by its place


def _as_written(call: ast.Call, name: str) -> None:
    """Write the mask of every call by its name or by its place, whichever the reference does not do."""
    if name == "load" and len(call.args) == 1:
        by_name = {each.arg: each.value for each in call.keywords}
        if "mask" in by_name:
            call.args += [by_name.pop("mask"), *([by_name.pop("other")] if "other" in by_name else [])]
            call.keywords = [each for each in call.keywords if each.arg in by_name]


_EDITS: dict[str, tuple[Edit, Worth]] = {
    "zeros": (_stored("({}) * 0"), Worth.NOTHING),
    "one more": (_stored("({}) + 1"), Worth.LESS),
    "NaN": (_stored("({}) + float('nan')"), Worth.NOTHING),
    "no masks": (_without_masks, Worth.LESS),
    "masks by their place": (_as_written, Worth.FULL),
}
