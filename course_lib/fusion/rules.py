"""The names of all rules that refuse a match, each with a remedy for the reader.

The order is that in which they are tried: a match that breaks a later rule came closer to being fused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import fx

REMEDIES: Mapping[str, str] = {
    "torch.func level": "Fuse the function that torch.func is given: torch.func.vmap(fuse(f, inputs).graph_module).",
    "argument": "Give the arguments that the pattern names, or keep the operators apart.",
    "alpha": "Write the factor as a multiplication of its own, or use alpha=1.",
    "approximate": 'Write approximate="none" or approximate="tanh" as a constant.',
    "literal": "Write the numbers of the formula in full, such as math.sqrt(2), or call the operator itself.",
    "spelling": "Call the layer or the function itself, such as F.linear(x, weight, bias).",
    "variance": "Take the biased variance, and add eps under the root; or leave it: this is no LayerNorm.",
    "overflow": "Subtract the maximum before the exponential, or call torch.softmax.",
    "subclass": "Use the class of torch.nn itself, without subclass or parametrisation.",
    "hooks": "Remove the hooks from the module, or put them on a module that is not part of the match.",
    "in place": "Use the operator that returns a new tensor instead of the one that writes into its operand.",
    "other users": "Let only the next operator read the intermediate value, or compute it a second time where needed.",
    "is an output": "Do not return the intermediate value.",
    "regime": "Move the whole computation to one side of where autocast or gradient recording is switched.",
    "unobserved": "Move the call before or after the whole computation, or register it as an operator: torch.library.",
    "random order": "Draw the other random numbers before or after the whole computation.",
    "mutation": "Change the tensor before it is read, or change a clone of it.",
    "shape unknown": "Give example inputs, so that shapes are known: fuse(model, example_inputs).",
    "shape": "Bring the operands to the shapes that the fused operator takes.",
    "bias shape": "Use a bias of one dimension, as long as the last dimension of the other operand.",
    "dtype": "Convert the operands to one dtype first.",
    "range": "Convert the operands to float32 or bfloat16, whose range is larger.",
    "training": "Put the module into evaluation mode and capture it again: model.eval().",
    "statistics": "Use a BatchNorm that keeps running statistics and has a weight and a bias.",
    "statistics of a function": "Call an nn.LayerNorm, in a graph that keeps modules: fuse(model, inputs).",
    "calibration": "Give inputs to measure on, LayerNormToBatchNorm(calibration=[(x,), ...]), or train: model.train().",
    "computed": "Fold in each run: leave out once=True.",
    "affine": "Give the normalisation a weight and a bias.",
    "shared": "Give each call a module of its own, and each module parameters of its own.",
    "one bias": "Give all of the layers a bias, or none; those that are alike are merged.",
    "no gradient": "Return one result that depends on all of the layers, or leave these layers apart.",
    "frozen": "Ask for gradients in all of the layers or in none, and capture again; those that are alike are merged.",
    "strides": "Copy what is read that way first: x.contiguous().",
    "scale": "Scale by a positive number: 1 / math.sqrt(64), or x.size(-1) ** -0.5 where that size does not change.",
    "fill": "Fill with -inf, or with torch.finfo(scores.dtype).min.",
    "mask promise": "If every row of the mask leaves a score, say so: Sdpa(every_row_sees_something=True).",
    "mask": "Use a mask of the scores' dtype, or a boolean one where scores are filled in, that broadcasts over them.",
    "traffic": "Nothing to do: fused, this would move more bytes than it does now.",
    "each run": "For inference only, fold once: ConvBatchNorm(once=True), LinearBatchNorm(once=True); or add rows.",
    "peak": "Nothing; or, if the graph only runs without gradients, fuse it under torch.no_grad().",
}


@dataclass(frozen=True)
class Objection:
    """Why a match is refused: the name of the rule, and a sentence about the place."""

    rule: str
    reason: str


def remedy(rule: str) -> str:
    """Return the remedy for a match that `rule` refused; the rules of a reader's own pass have none."""
    return REMEDIES.get(rule, "")


def closeness(objection: Objection) -> int:
    """Return the position of an objection's rule; a match with a larger position came closer to being fused."""
    return list(REMEDIES).index(objection.rule) if objection.rule in REMEDIES else -1


def source_of(node: fx.Node) -> tuple[str, str, str] | None:
    """Return the innermost line of a node's stack trace, as "model.py:12", "forward" and the text; None without one."""
    found = list(re.finditer(r'File "(.+?)", line (\d+), in (\S+)\n?([^\n]*)', node.stack_trace or ""))
    if not found:
        return None
    file, line, function, text = found[-1].groups()
    return f"{Path(file).name}:{line}", function, text.strip()


def place_of(node: fx.Node) -> str:
    """Return the source line of a node for a sentence, such as " (model.py:12)"; empty if it is not known."""
    source = source_of(node)
    return "" if source is None else f" ({source[0]})"
