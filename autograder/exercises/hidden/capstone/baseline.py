"""Hidden checks and controls of exercise 17.1."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from autograder.exercises.capstone import baseline as visible
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Question
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Control, HiddenPart
from autograder.host.kinds.value import ValueAnswer
from autograder.host.point_shares import share_among
from course_lib.graph import cost, saved_for_backward
from course_lib.models import TransformerConfig, TransformerLayer

ANSWERS = Answers(__name__)
Counters = Mapping[str, Any]
SAYS = {
    "C1": "It is the number of graphs after the first batch.",
    "C2": "It is the number of graphs that the later batches add. Dynamo remembers earlier calls: reset it first.",
    "C3": "It is the launches of one eager forward pass in training mode, on the first batch.",
    "C4": "It is bytes moved over minimum bytes, of one eager forward pass in training mode on the first batch.",
    "C5": "It is the total of saved_for_backward in training mode, on the first batch.",
}
RECOUNT = """
import json, torch
from torch._dynamo.testing import CompileCounter
from course_lib.graph import cost, saved_for_backward
from course_lib.models import TransformerConfig, TransformerLayer

def recount(text):
    asked = json.loads(text)
    layer = TransformerLayer(TransformerConfig(**asked["config"])).train()
    width = asked["config"]["hidden_size"]
    given = [torch.zeros(batch, asked["sequence"], width) for batch in asked["batches"]]
    eager = cost(layer, (given[0],))
    saved = saved_for_backward(layer, (given[0],)).total_bytes
    torch._dynamo.reset()
    graphs = CompileCounter()
    compiled = torch.compile(layer, backend=graphs)
    after = []
    for batch in given:
        compiled(batch)
        after.append(graphs.frame_count)
    return [after[0], after[-1] - after[0], eager.launches, eager.bytes_moved / eager.minimum_bytes, saved]
"""


def known(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the counters of a question, and wrong ones with their sentences.

    C1 and C2 follow from Dynamo's rule: the first size is fixed, the first change makes it dynamic, and a batch of one
    example has a graph of its own. Whether the installed Dynamo follows it is counted by `recounted`.
    """
    config, batches = asked["config"], asked["batches"]
    layer = TransformerLayer(TransformerConfig(**config)).train()
    given = (torch.zeros(batches[0], asked["sequence"], config["hidden_size"]),)
    eager, saved = cost(layer, given), saved_for_backward(layer, given).total_bytes
    whole = cost(lambda x: layer(x).square().mean().backward(), given)
    quiet = cost(layer.eval(), given)
    extra = eager.bytes_moved / eager.minimum_bytes
    first, *later = batches
    graphs = (1 in later and first > 1) + any(size not in (1, first) for size in later)
    training = "Dropout does nothing in evaluation mode; count in training mode, `layer.train()`."
    right = {"C1": 1, "C2": graphs, "C3": eager.launches, "C4": extra, "C5": saved}
    wrong = {
        "C2": [[right["C2"] + 1, "That is all graphs, the first as well. C2 is what the later batches add."]],
        "C3": [
            [whole.launches, "That is forward and backward. C3 is of the forward pass."],
            [quiet.launches, training],
        ],
        "C4": [
            [eager.bytes_moved, "That is bytes moved; divide them by minimum_bytes."],
            [1 / extra, "That is upside down: divide bytes moved by minimum bytes."],
            [quiet.bytes_moved / quiet.minimum_bytes, training],
        ],
        "C5": [[saved_for_backward(layer, given).total_bytes, training]],
    }
    return {"right": right, "wrong": wrong, "says": SAYS}


def recounted(answer: ValueAnswer, asked: Mapping[str, Any]) -> dict[str, float]:
    """Return the counters as a worker counts them that never sees the student's code."""
    found = answer.recount(RECOUNT, "recount", dict(asked))
    if not isinstance(found, list) or len(found) != len(visible.COUNTERS):
        raise MalformedAnswerError
    return dict(zip(visible.COUNTERS, found, strict=True))


def agrees_with_a_recount(answer: ValueAnswer, draw: Draw) -> None:
    """Check all counters of two layers, one of which gets a batch of one example; C1 and C2 count together."""
    drawn = [visible.question(draw, single=True), visible.question(draw)]
    records = [(asked, visible.counters_of(answer, asked), recounted(answer, asked)) for asked in drawn]
    _share([visible.GRAPHS, *visible.COSTS], records)


def _share(parts: Sequence[tuple[str, ...]], records: Sequence[tuple[Question, Counters, Counters]]) -> None:
    """Require the counters of all layers to be right; each part is worth as much as another."""

    def require(names: tuple[str, ...]) -> None:
        for (asked, found, right), name in itertools.product(records, names):
            visible.require_counter(found, name, right[name], SAYS[name], asked)

    share_among(parts, require, noun="counters")


def repeats(answer: ValueAnswer, draw: Draw) -> None:
    """Check that a record comes out the same when two other layers were counted in between.

    Numbers that were invented come again as well, so only costs that are right of the other layers have their share.
    """
    asked, *others = visible.question(draw, single=True), visible.question(draw), visible.question(draw)
    first = dict(visible.counters_of(answer, asked))
    between = [visible.counters_of(answer, other) for other in others]
    again = visible.counters_of(answer, asked)
    if not set(visible.COUNTERS) <= set(first) or first in between:
        raise CheckFailedError("The counters are incomplete, or those of another layer are the same.")
    if first != again:
        differs = [name for name in visible.COUNTERS if first[name] != again.get(name)]
        changed = ", ".join(f"{name} {first[name]!r:.20} and {again.get(name)!r:.20}" for name in differs)
        raise CheckFailedError(
            f"Counted twice, with other layers in between, the same layer has {changed}. Dynamo remembers what it "
            "compiled: call torch._dynamo.reset() first, and use a CompileCounter of your own each time."
        )
    records = [(asked, found, known(asked)["right"]) for asked, found in zip(others, between, strict=True)]
    _share(visible.COSTS, records)


STUBBORN = """
def baseline(question):
    facts = {"python": "3.11.2", "torch": "2.13.0", "processor": "a CPU", "system": "Linux", "cores": 2, "threads": 1}
    return {"environment": facts, "counters": {"C1": 1, "C2": 1, "C3": 28, "C4": 4.5, "C5": 100000}}
"""

HIDDEN = HiddenPart(
    checks=(
        Check("all counters, as a clean worker counts them", "recount", 3, agrees_with_a_recount),
        Check("the same again after another layer", "repeatability", 1.5, repeats),
    ),
    controls=(
        ANSWERS.reference(10),
        *ANSWERS.styles(10),
        Control("numbers of another layer", STUBBORN, 5, below=True),
        Control(
            "nothing in the record", "def baseline(question):\n    return {'environment': {}, 'counters': {}}\n", 0
        ),
        ANSWERS.edited("no environment", 9.5, ("environment().to_json()", "{}")),
        ANSWERS.edited("an environment as text", 9.5, ("environment().to_json()", "str(environment())")),
        ANSWERS.edited("no reset", 10, ("torch._dynamo.reset()", "pass"), below=True),
        ANSWERS.edited("bytes for C4", 8, (" / forward.minimum_bytes", ""), below=True),
        ANSWERS.edited("all graphs for C2", 7.25, ("numbers[-1] - numbers[0]", "numbers[-1]")),
        ANSWERS.edited("in evaluation mode", 3.25, (".train()", ".eval()")),
        ANSWERS.edited(
            "the last batch is counted",
            10,
            ("forward = cost(layer, inputs[:1])", "forward = cost(layer, inputs[-1:])"),
            below=True,
        ),
        ANSWERS.edited(
            "upside down",
            10,
            ("forward.bytes_moved / forward.minimum_bytes", "forward.minimum_bytes / forward.bytes_moved"),
            below=True,
        ),
        ANSWERS.edited("operators in place of graphs", 7.5, ("graphs.frame_count", "graphs.op_count"), below=True),
        ANSWERS.edited(
            "the step in place of its forward pass",
            6,
            ("cost(layer, inputs[:1])", "cost(lambda x: layer(x).sum().backward(), inputs[:1])"),
            below=True,
        ),
        ANSWERS.edited("saved bytes in kB", 8, ("'C5': saved", "'C5': saved / 1000"), below=True),
    ),
    right_here={"wrong in the first entry only": "it changes the processor's name, and any name is a right one"},
)
