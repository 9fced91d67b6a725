"""Hidden checks and controls of exercise 17.6."""

from collections.abc import Sequence

from autograder.exercises.capstone import review_fusion as visible
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.counterexample import Trial, disproves

ANSWERS = Answers(__name__)
DEFECTS = {
    "a keyword of the sum": "The fused call drops something that a sum can say besides its two terms.",
    "another reader of the sum": "Whoever else reads the sum gets the normalised values.",
    "a write in between": "The fused call reads the terms later than the sum did.",
}
ALONE = "A program with two defects shows neither."
TEXT = '''
import copy, operator, torch
from torch import fx
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves
from course_lib.fusion.effects import mutates
import course_lib.kernels

DEFECTS = {defects!r}

def fuse(gm, kept):
    """Return the graph fused with only one of the defects; with none of them if `kept` is empty."""
    gm = copy.deepcopy(gm)
    for norm in gm.graph.find_nodes(op="call_function", target=F.layer_norm):
        total, options = norm.args[0], norm.kwargs
        if total.target not in (operator.add, torch.add) or not all(isinstance(t, fx.Node) for t in total.args):
            continue
        if options.get("weight") is None or options.get("bias") is None:
            continue
        nodes = list(gm.graph.nodes)
        between = nodes[nodes.index(total) : nodes.index(norm)]
        seen = [bool(total.kwargs), len(total.users) > 1, any(map(mutates, between))]
        if any(found and name != kept for found, name in zip(seen, DEFECTS)):
            continue
        with gm.graph.inserting_before(norm):
            arguments = (*total.args, options["weight"], options["bias"], options["eps"])
            fused = gm.graph.call_function(torch.ops.course_lib.residual_layer_norm.default, arguments)
        norm.replace_all_uses_with(fused)
        gm.graph.erase_node(norm)
        total.replace_all_uses_with(fused)
        gm.graph.erase_node(total)
    gm.recompile()
    return gm

def run(program, inputs):
    return program(*copy.deepcopy(inputs))

def reference(*found):
    return [run(program, inputs) for program, *inputs in found]

def right(*found):
    return [run(fuse(program, ""), inputs) for program, *inputs in found]

def wrong(*found):
    return [run(fuse(program, {kept!r}), inputs) for program, *inputs in found]
'''


def by_defect(draw: Draw) -> Sequence[Trial]:
    """Return a trial for each defect: the fusion with that defect alone must change one of the programs."""
    return [
        visible.trial(f"the defect at {name}", TEXT.format(defects=tuple(DEFECTS), kept=name), f"{why} {ALONE}", draw)
        for name, why in DEFECTS.items()
    ]


ONE_PROGRAM = """
def review(question):
    n = question["width"]
    x, w, b = torch.randn(4, n), torch.ones(n), torch.zeros(n)
    item = (lambda x, y, w, b: {body}), x, torch.randn(4, n), w, b
    return item, item, item
"""
ALPHA = "F.layer_norm(torch.add(x, y, alpha=3), (n,), w, b)"
READER = "(s := x + y, F.layer_norm(s, (n,), w, b) + s)[1]"
WRITE = "(s := x + y, x.neg_(), F.layer_norm(s, (n,), w, b))[2]"

HIDDEN = HiddenPart(
    checks=(Check("each defect is shown", "defects", 5, disproves(by_defect)),),
    controls=(
        ANSWERS.reference(10),
        *ANSWERS.styles(10),
        Control("three times a keyword", ONE_PROGRAM.format(body=ALPHA), 6.666667, trap="and all three differ"),
        Control("three times another reader", ONE_PROGRAM.format(body=READER), 6.666667, trap="and all three differ"),
        Control("three times a write", ONE_PROGRAM.format(body=WRITE), 6.666667, trap="and all three differ"),
        Control("programs that are fused rightly", ONE_PROGRAM.format(body="F.layer_norm(x + y, (n,), w, b)"), 0),
        Control("programs without a sum", ONE_PROGRAM.format(body="F.layer_norm(x, (n,), w, b)"), 0),
        Control("a keyword that changes nothing", ONE_PROGRAM.format(body=ALPHA.replace("=3", "=1")), 0),
        Control("a write to what the sum does not read", ONE_PROGRAM.format(body=WRITE.replace("x.neg_", "w.exp")), 0),
        Control(
            "programs far too long",
            ONE_PROGRAM.format(body=ALPHA.replace("torch.add(x", "torch.add(-(-(-(-(-x))))")),
            0,
        ),
        ANSWERS.edited(
            "two keywords and no reader",
            8.333333,
            ("weight, bias) + total", "weight, bias)"),
            (
                "def reader(x, y, weight, bias):\n        total = x + y",
                "def reader(x, y, weight, bias):\n        total = torch.add(x, y, alpha=5)",
            ),
        ),
        ANSWERS.edited("two programs", 0, (", (write, *inputs))", ")")),
        ANSWERS.edited(
            "a write behind the norm",
            10,
            (
                "x.neg_()\n        return F.layer_norm(total, (width,), weight, bias)",
                "out = F.layer_norm(total, (width,), weight, bias)\n        x.neg_()\n        return out",
            ),
            below=True,
        ),
        ANSWERS.edited("the sum anew for its reader", 10, ("bias) + total", "bias) + (x + y)"), below=True),
        ANSWERS.edited("a difference of two", 10, ("torch.add(x, y, alpha=3)", "torch.sub(x, y, alpha=3)"), below=True),
    ),
)
