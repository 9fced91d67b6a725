"""Hidden checks and controls of exercise 03.2."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.torchscript import make_it_scriptable as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.callable import Case


def _everything(draw: Draw, width: int) -> list[Case]:
    mask = (draw.normal(2, width) > 0).float()
    x = [draw.normal(2, width) for _ in range(6)]
    return [
        Case((x[0],), {"scale": 2.0}, label="with a scale"),
        Case((x[1], mask), {"scale": 3.0}, label="with mask and scale"),
        Case((x[2],), label="with nothing"),
        Case((x[3], mask), {"fresh": True}, label="with mask and fresh"),
        Case((x[4], None), {"scale": -1.0, "fresh": False}, label="with None, scale and fresh"),
        Case((x[5],), label="with nothing"),
    ]


def _broadcast(draw: Draw, width: int) -> list[Case]:
    """Return calls with masks whose shape differs from the value's, and with values of rank 3."""
    return [
        Case((draw.normal(2, 3, width), (draw.normal(width) > 0).float()), label="with a mask of rank 1")
        for _ in range(3)
    ]


ANSWERS = Answers(__name__)
LAST = "return Recall(width, depth)"
HIDDEN = HiddenPart(
    checks=(
        Check("masks now and then, and None", "branches", 1, visible.agrees([(3, 3, visible.optional)], "masks")),
        Check("fresh forgets", "branches", 1.5, visible.agrees([(5, 4, visible.forgetting)], "remembers")),
        Check(
            "all options together",
            "options together",
            1,
            visible.agrees([(4, 3, _everything), (1, 1, _everything)], "masks", "scales"),
        ),
        Check("masks that are broadcast", "shapes", 1, visible.agrees([(6, 2, _broadcast)], "masks")),
    ),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.edited("scripted by the student", 10, (LAST, "return torch.jit.script(Recall(width, depth))")),
        ANSWERS.edited(
            "filled where masked", 10, ("value = value * mask", "value = value.masked_fill(mask == 0, 0.0)")
        ),
        ANSWERS.edited(
            "traced",
            5,
            (LAST, "return torch.jit.trace(Recall(width, depth), (torch.ones(2, width),))"),
            below=True,
        ),
        ANSWERS.edited(
            "not scriptable",
            0,
            ("x, mask: torch.Tensor | None=None, scale: float=1.0, fresh: bool=False", "x, mask=None, **options"),
            ("* scale", "* options.get('scale', 1.0)"),
            ("if fresh", "if options.get('fresh', False)"),
        ),
        ANSWERS.edited("filled in place", 10, ("value = value * mask", "value.masked_fill_(mask == 0, 0.0)")),
        ANSWERS.edited("filled by index", 10, ("value = value * mask", "value[mask.expand_as(value) == 0] = 0.0")),
        ANSWERS.edited("asked for its type", 10, ("if mask is not None:", "if isinstance(mask, torch.Tensor):")),
        ANSWERS.edited(
            "the first entry deleted",
            10,
            (
                "self.past = self.past[-self.depth:]",
                "if len(self.past) > self.depth:\n                del self.past[0]",
            ),
        ),
        ANSWERS.edited(
            "prints what it sees",
            10,
            ("self.past.append(value)", "print('value', value.size(0), scale)\n            self.past.append(value)"),
        ),
        ANSWERS.edited("forgets", 5.5, ("self.past.append(value)", "self.past = [value]")),
        ANSWERS.edited("grows", 7, ("self.past = self.past[-self.depth:]", "pass")),
        ANSWERS.edited("no mask", 5.5, ("value = value * mask", "value = value * 1.0")),
        ANSWERS.edited("no scale", 8, ("self.dense(x) * scale", "self.dense(x)")),
    ),
)
