"""Exercise 17.6: review a machine-written fusion, and show each of its defects by a small program."""

from collections.abc import Sequence
from typing import Any

from torch import fx

from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.counterexample import Trial, disproves
from autograder.host.kinds.returned_values import Values

DEFECTS = 3
MAX_NODES = 9  # enough for each defect, with four inputs and the output
TEXT = """
import copy, torch
from torch.nn import functional as F
from course_lib.fusion.machine_written import fuse_add_norm

def reference(*found):
    program, *inputs = found[{place}]
    return program(*inputs)

def right(*found):
    program, *inputs = found[{place}]
    return normed(program)(*inputs)

def normed(program):
    # the fused kernel computes each norm, of a sum that stays: it rounds as the fusion does, and has no defect
    program = copy.deepcopy(program)
    for norm in program.graph.find_nodes(op="call_function", target=F.layer_norm):
        total, options = norm.args[0], norm.kwargs
        if options.get("weight") is None or options.get("bias") is None:
            continue
        with program.graph.inserting_before(norm):
            nothing = program.graph.call_function(torch.zeros_like, (total,))
            terms = total, nothing, options["weight"], options["bias"], options["eps"]
            norm.replace_all_uses_with(
                program.graph.call_function(torch.ops.course_lib.residual_layer_norm.default, terms)
            )
        program.graph.erase_node(norm)
    program.recompile()
    return program

def wrong(*found):
    program, *inputs = found[{place}]
    return fuse_add_norm(program)(*inputs)
"""


def accepts(inputs: Values) -> str:
    """Return why these programs are not accepted; empty if they are."""
    found = inputs.arguments
    if len(found) != DEFECTS or not all(_is_item(item) for item in found):
        return "Return a tuple of three tuples; each is a program, then its inputs, as in `(program, x, y)`."
    for place, (program, *_) in enumerate(found):
        nodes = len(program.graph.nodes)
        if nodes > MAX_NODES:
            return f"Program {place + 1} has {nodes} nodes; {MAX_NODES} are enough, inputs and output included."
    return ""


def _is_item(item: Any) -> bool:
    return isinstance(item, list | tuple) and len(item) > 1 and isinstance(item[0], fx.GraphModule)


def trial(name: str, text: str, explanation: str, draw: Draw) -> Trial:
    """Return a trial of the three programs together, for a drawn width."""
    return Trial(
        name,
        text,
        question={"width": draw.integer(3, 16)},
        accepts=accepts,
        explain=lambda inputs: explanation,
        graphs=DEFECTS,
        max_elements=4096,
        wrong="the fusion",
        right="the program with the norm of the fused kernel",
    )


def by_place(draw: Draw) -> Sequence[Trial]:
    """Return a trial for each program: the fusion as it is must change what this program gives."""
    why = "Either the fusion does not apply to it, or what it gets wrong makes no difference here."
    return [trial(f"program {place + 1}", TEXT.format(place=place), why, draw) for place in range(DEFECTS)]


EXERCISE = Exercise(
    title="Review a fusion that a machine wrote",
    kind=Kind.COUNTEREXAMPLE,
    entry_point="review",
    points=10,
    wall_s=30,
    hints=(
        "Ask of each value that the fusion reads, moves or erases: who else sees it, and what else did the call say?",
        "One defect is in what the sum says besides its two terms, one in who reads it, and one in what "
        "happens between the sum and the norm.",
        "torch.add has a keyword. A pre-norm block reads the sum twice. x.mul_(2) after x + y leaves the sum.",
    ),
    checks=(Check("each program is changed by the fusion", "counterexamples", 5, disproves(by_place)),),
)
