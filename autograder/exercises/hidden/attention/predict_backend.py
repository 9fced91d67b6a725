"""Hidden checks and controls of exercise 13.1."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from autograder.exercises.attention.predict_backend import (
    ALLOWED,
    MASKS,
    PLAIN,
    REFUSED,
    SHAPES,
    Call,
    dropped,
    mask,
    predicts,
    setting,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Known
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values

FLASH = "_scaled_dot_product_flash_attention_for_cpu"
KERNELS = {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}


class _Seen(TorchDispatchMode):
    """Note which operators run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func._schema.name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


def backend_of(call: Mapping[str, Any]) -> str:
    """Return the kernel that PyTorch takes for a call, by making the call; "error" if it raises."""
    (query, key, value), mask = _tensors(call)
    with (
        warnings.catch_warnings(action="ignore"),
        _Seen() as seen,
        sdpa_kernel([KERNELS[name] for name in call["allowed"]]),
    ):
        try:
            F.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, dropout_p=call["dropout"], is_causal=call["causal"]
            )
        except RuntimeError:  # SDPA refuses the call
            return "error"
    return "flash" if FLASH in seen.names else "math"


def _tensors(call: Mapping[str, Any]) -> tuple[list[torch.Tensor], torch.Tensor | None]:
    dtype = getattr(torch, call["dtype"])
    found = []
    for name in ("query", "key", "value"):
        tensor = torch.zeros(call[name], dtype=dtype)
        if call["turned"] and name == "key":
            tensor = tensor.mT.contiguous().mT
        found.append(tensor.requires_grad_(call["trains"]))
    mask = call["mask"]
    if mask is None:
        return found, None
    made = torch.ones(mask["shape"], dtype=getattr(torch, mask["dtype"]))
    return found, made.requires_grad_() if mask["learned"] else made


Rule = Callable[[Call], bool]
RULES: Mapping[str, Rule] = {
    "dropout": lambda c: c["dropout"] == 0,
    "dimensions": lambda c: len(c["query"]) == 4,
    "width": lambda c: c["value"][-1] == c["query"][-1],
    "layout": lambda c: not c["turned"],
    "learned": lambda c: not (c["mask"] and c["mask"]["learned"]),
    "mask's dimensions": lambda c: not c["mask"] or len(c["mask"]["shape"]) in (2, 4),
}
"""What the fused kernel asks for; an answer without one of them has a known mistake."""


def _by_rules(call: Call, without: str = "", *, allowed: bool = True, both: bool = True, dtypes: bool = True) -> str:
    mask = call["mask"]
    if dtypes and mask and mask["dtype"] not in ("bool", "float32", call["dtype"]):
        return "error"
    fits = all(holds(call) for name, holds in RULES.items() if name != without)
    kernels = call["allowed"] if allowed else ("flash", "math")
    if fits and "flash" in kernels:
        return "flash"
    return "math" if "math" in kernels and not (both and mask and call["causal"]) else "error"


MISCONCEPTIONS = (
    Misconception(
        lambda c: "error" if c["mask"] and c["causal"] else _by_rules(c),
        "A mask beside is_causal=True is no error in itself: the fused kernel applies both, only math raises.",
    ),
    Misconception(
        lambda c: _by_rules(c, both=False),
        "Math raises if there is a mask and the call is causal; only flash takes both.",
    ),
    Misconception(
        lambda c: _by_rules(c, dtypes=False), "The mask's dtype raises: it is bool, float32, or the dtype of the query."
    ),
    Misconception(
        lambda c: "error" if c["mask"] and c["mask"]["dtype"] not in ("bool", c["dtype"]) else _by_rules(c),
        "A mask of float32 goes with a query of every dtype.",
    ),
    Misconception(
        lambda c: _by_rules(c, "dropout"),
        "The fused kernel for CPUs has no dropout; with dropout, attention is computed step by step.",
    ),
    Misconception(
        lambda c: _by_rules(c, "dimensions"),
        "The fused kernel takes four dimensions: batch, heads, sequence, width. Three go to math.",
    ),
    Misconception(
        lambda c: _by_rules(c, "width"), "Values of another width go to math; the fused kernel takes one width."
    ),
    Misconception(lambda c: _by_rules(c, "layout"), "The fused kernel reads along a contiguous last dimension."),
    Misconception(
        lambda c: _by_rules(c, "learned"),
        "The fused kernel gives no gradient by the mask, so a mask that requires one goes to math.",
    ),
    Misconception(
        lambda c: _by_rules(c, "mask's dimensions"),
        "A mask of three dimensions goes to math; the fused kernel takes two or four.",
    ),
    Misconception(lambda c: _by_rules(c, allowed=False), "Only some kernels are allowed here; see the entry allowed."),
    Misconception(
        lambda c: "math" if c["mask"] else _by_rules(c), "A mask alone does not lead to math; the fused kernel adds it."
    ),
    Misconception(
        lambda c: "math" if c["trains"] else _by_rules(c),
        "Gradients alone do not lead to math; the fused kernel has them.",
    ),
    Misconception(
        lambda c: "math" if c["causal"] else _by_rules(c),
        "A causal call stays with the fused kernel, which skips half.",
    ),
    Misconception(lambda c: "math" if c["dtype"] != "float32" else _by_rules(c), "The dtype decides nothing here."),
)


def known(call: Mapping[str, Any]) -> Known:
    """Return the kernel that PyTorch takes for a call, and the predictions of known mistakes."""
    return {"right": backend_of(call), "wrong": wrong_values(call, MISCONCEPTIONS)}


ANSWERS = Answers(__name__)
MASKED_AND_DROPPED = tuple((*each, dropped) for each in MASKS)
TRAINED = ((setting(trains=True),), (setting(trains=True), mask("queries", "keys")))

HIDDEN = HiddenPart(
    checks=(
        Check("calls that raise", "errors", 1, predicts(PLAIN, REFUSED)),
        Check("some kernels allowed", "allowed kernels", 0.5, predicts(PLAIN, ALLOWED)),
        Check(
            "everything together",
            "everything",
            1,
            predicts(PLAIN, MASKS, SHAPES, ALLOWED, MASKED_AND_DROPPED, REFUSED, TRAINED),
        ),
    ),
    right_here={"text": "the answer is a text"},
    controls=(
        ANSWERS.reference(6),
        ANSWERS.file("one condition after the other", 6),
        ANSWERS.file("two functions", 6),
        ANSWERS.edited(
            "by other names of the same",
            6,
            ("not call['dropout']", "call['dropout'] == 0"),
            ("len(call['query']) == 4", "len(call['value']) > 3"),
            ("call['value'][-1] == call['query'][-1]", "call['value'][-1] == call['key'][-1]"),
        ),
        ANSWERS.edited("a mask's dimensions are even", 6, ("len(mask['shape']) != 3", "len(mask['shape']) % 2 == 0")),
        ANSWERS.edited(
            "a set of dtypes", 6, ("('bool', 'float32', call['dtype'])", "{'bool', 'float32', call['dtype']}")
        ),
        ANSWERS.edited("none is false", 6, ("all(fits)", "False not in [bool(each) for each in fits]")),
        ANSWERS.edited("counted", 6, ("all(fits)", "sum(map(bool, fits)) == len(fits)")),
        Control("always flash", "def predict_backend(call):\n    return 'flash'\n", 0),
        Control("always math", "def predict_backend(call):\n    return 'math'\n", 0),
        ANSWERS.file("makes the call", 0),
        ANSWERS.edited("dropout stays fused", 3, ("not call['dropout'], ", "")),
        ANSWERS.edited("three dimensions stay fused", 3.5, ("len(call['query']) == 4, ", "")),
        ANSWERS.edited("learned masks stay fused", 3.5, ("not mask or not mask['learned']", "True")),
        ANSWERS.edited("masks of three dimensions stay fused", 3.5, (", not mask or len(mask['shape']) != 3", "")),
        ANSWERS.edited("other widths stay fused", 4, ("call['value'][-1] == call['query'][-1]", "True")),
        ANSWERS.edited("any layout stays fused", 3, ("not call['turned'], ", "")),
        ANSWERS.edited(
            "math takes both",
            4,
            ("not (mask and call['causal'])", "True"),
            trap="With a mask and `causal` together, math raises",
        ),
        ANSWERS.edited(
            "any dtype of a mask",
            4,
            ("mask['dtype'] not in ('bool', 'float32', call['dtype'])", "False"),
            trap="A mask's dtype is `bool`, `float32` or the query's; others raise.",
        ),
        ANSWERS.edited(
            "only the dtype of the query",
            4,
            ("'float32', ", ""),
            trap="A mask's dtype is `bool`, `float32` or the query's; others raise.",
        ),
        ANSWERS.edited(
            "everything is allowed",
            4.5,
            (" and 'flash' in call['allowed']", ""),
            trap="the kernels that `sdpa_kernel` allows",
        ),
        ANSWERS.edited(
            "math is always allowed",
            4.5,
            ("'math' in call['allowed'] and ", ""),
            trap="the kernels that `sdpa_kernel` allows",
        ),
        ANSWERS.edited("any mask leads to math", 2.5, ("not mask or not mask['learned']", "not mask")),
        ANSWERS.edited(
            "gradients lead to math",
            4,
            ("not call['dropout'], ", "not call['dropout'], not call['trains'], "),
        ),
        ANSWERS.edited(
            "causal leads to math", 3, ("not call['dropout'], ", "not call['dropout'], not call['causal'], ")
        ),
    ),
)
