"""Hidden checks and controls of exercise 04.2."""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.exercises.fx_capture.custom_tracer import BELIEFS, OPENED, models, rows
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.analysis import AnalysisAnswer, sees


def _keeps(options: Mapping[str, Any]) -> Callable[[AnalysisAnswer, Draw], None]:
    return sees(rows, models(options), BELIEFS, granted=(OPENED,))


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("a part under another name", "names", 1, _keeps({"blocks": 2, "name": "mixer"})),
        Check("a block that is called twice", "shared parts", 1, _keeps({"blocks": 2, "shared": True})),
        Check(
            "two classes to keep",
            "several classes",
            1.2,
            _keeps({"routed": True, "leaves": ["Attention", "Router"]}),
        ),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.edited("inside torch.nn, too", 5.6, (" or super().is_leaf_module(module, path)", "")),
        ANSWERS.edited("by path", 8, ("type(module).__name__ in leaves", "path.endswith('attention')"), below=True),
        ANSWERS.edited(
            "whatever has no parts",
            6.8,
            ("super().is_leaf_module(module, path)", "not list(module.children())"),
        ),
        ANSWERS.edited("part of a name", 6.8, ("in leaves", "in leaves or 'Attention' in type(module).__name__")),
        ANSWERS.edited("whole blocks", 0, ("in leaves", "in ('Block', *leaves)")),
        ANSWERS.edited("the first class only", 8, ("in leaves", "in leaves[:1]"), below=True),
    ),
)
