"""Hidden checks and controls of exercise 04.2."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import fx, nn

from autograder.exercises.fx_capture.custom_tracer import OPENED, models
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.analysis import AnalysisAnswer, Belief, known_of, sees

SEVERAL: tuple[Mapping[str, Any], ...] = (
    {"routed": True, "leaves": ["Attention", "Router"]},
    {"routed": True, "leaves": ["Router", "Attention", "AttentionScale"]},
    {"blocks": 2, "leaves": ["Block"]},
)
"""Classes to keep: those that cannot be opened, and others that could."""


def _keeps(*options: Mapping[str, Any]) -> Callable[[AnalysisAnswer, Draw], None]:
    return sees(known, models(*options), granted=(OPENED,), together=True)


def rows(root: nn.Module, leaves: list[str]) -> list[list[Any]]:
    """Return the nodes of the graph in which modules of the classes `leaves` are one node each.

    Each node is a list of its name, op, target, and the names of the nodes it reads.
    """
    return _traced(root, lambda part: type(part).__name__ in leaves)


def _traced(root: nn.Module, is_leaf: Callable[[nn.Module], bool], *, asks_super: bool = True) -> list[list[Any]]:
    class Keeping(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return (asks_super and super().is_leaf_module(m, module_qualified_name)) or is_leaf(m)

    graph = Keeping().trace(root)
    return [[n.name, n.op, str(n.target), [a.name for a in n.all_input_nodes]] for n in graph.nodes]


OPENED_BELIEF = Belief(
    lambda root, leaves: _traced(root, lambda part: type(part).__name__ in leaves, asks_super=False),
    OPENED,
)


NOT_NAMED = (
    "a part became one node whose class is not among the given ones. Compare the whole name of the class: what it "
    "contains, and whether the part has parts of its own, makes no difference."
)

BELIEFS = (
    OPENED_BELIEF,
    Belief(
        lambda root, leaves: _traced(root, lambda part: type(part).__name__ in ("Attention", "Router")),
        "some classes became one node whatever the list says; keep those that `leaves` names.",
    ),
    Belief(
        lambda root, leaves: _traced(root, lambda part: type(part).__name__ in ("Block", *leaves)),
        "whole blocks became one node; only the classes that are named should.",
    ),
    Belief(
        lambda root, leaves: _traced(root, lambda part: part is not root),
        "every part became one node; only the classes that are named should.",
    ),
    Belief(
        lambda root, leaves: _traced(
            root, lambda part: type(part).__name__ in leaves or not list(part.children()), asks_super=False
        ),
        NOT_NAMED,
    ),
    Belief(
        lambda root, leaves: _traced(root, lambda part: any(leaf in type(part).__name__ for leaf in leaves)),
        NOT_NAMED,
    ),
)


known = known_of(rows, BELIEFS)

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("a part under another name", "names", 1, _keeps({"blocks": 2, "renamed": True})),
        Check("a block that is called twice", "shared parts", 1, _keeps({"blocks": 2, "shared": True})),
        Check("several classes to keep", "several classes", 1, _keeps(*SEVERAL)),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.file("classes of torch for the call", 8),  # it uses the usual rule, and the graph is the right one
        ANSWERS.edited("inside torch.nn, too", 6, (" or super().is_leaf_module(module, path)", "")),
        ANSWERS.edited("by path", 3, ("type(module).__name__ in leaves", "path.endswith('attention')")),
        ANSWERS.edited(
            "whatever has no parts",
            7,
            ("super().is_leaf_module(module, path)", "not list(module.children())"),
        ),
        ANSWERS.edited("part of a name", 7, ("in leaves", "in leaves or 'Attention' in type(module).__name__")),
        ANSWERS.edited("whole blocks", 1, ("in leaves", "in ('Block', *leaves)")),
        ANSWERS.edited("one class by heart", 6, ("in leaves", "in ('Attention',)")),
        ANSWERS.edited("the first class only", 7, ("in leaves", "in leaves[:1]")),
        ANSWERS.edited("two classes by heart", 6, ("in leaves", "in ('Attention', 'Router')")),
    ),
)
