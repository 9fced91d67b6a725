"""Hidden checks and controls of exercise 11.3."""

import operator
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, fx
from torch.nn import functional as F

from autograder.exercises.custom_operators.place_the_pass import (
    ADDMM,
    HOOKS,
    MM,
    SPELLINGS,
    TORCH,
    of,
    places,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Known, Question
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values

ATEN = torch.ops.aten
VIEWS = (ATEN.view.default, ATEN.reshape.default, ATEN._unsafe_view.default)
ALL = list(HOOKS)


def _program(spelling: str, read_again: bool, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    if "linear" in spelling:
        return F.linear(x, w.t(), b)
    made = x @ w
    more = made * 2 if read_again else 0
    total = made + b if "+" in spelling else made.clone().add_(b) if read_again else made.add_(b)
    return total.relu() + more


def _behind_views(node: Any) -> Any:
    while isinstance(node, fx.Node) and node.target in VIEWS:
        node = node.args[0]
    return node


def _sees(graph: fx.Graph, pattern: str) -> bool:
    """Tell whether the pattern is in the graph; views between product and sum do not count."""
    if pattern == ADDMM:
        return bool(graph.find_nodes(op="call_function", target=ATEN.addmm.default))
    sums, products = {
        TORCH: ((operator.add, torch.add), (operator.matmul, torch.matmul)),
        MM: ((ATEN.add.Tensor,), (ATEN.mm.default,)),
    }[pattern]
    called = [node for node in graph.nodes if node.target in sums]
    return any(getattr(_behind_views(a), "target", None) in products for node in called for a in node.args)


@lru_cache(maxsize=64)
def _seen(spelling: str, rank: int, read_again: bool) -> dict[str, fx.GraphModule]:
    from course_lib.inductor_passes import graphs_at_hooks

    shape = (2, 4, 8)[-rank:]
    inputs = [torch.zeros(shape), torch.zeros(8, 8), torch.zeros(8)]
    return graphs_at_hooks(lambda x, w, b: _program(spelling, read_again, x, w, b), inputs)


def hooks(asked: Question) -> list[str]:
    """Return the names of the hooks whose graph has the pattern."""
    seen = _seen(asked["spelling"], asked["rank"], asked["read_again"])
    return sorted(hook for hook, made in seen.items() if _sees(made.graph, asked["pattern"]))


def _nowhere_folded(asked: Question) -> list[str]:
    if asked["pattern"] == TORCH or "linear" in asked["spelling"]:
        return ["none"]
    return sorted(ALL[1:]) if asked["pattern"] == MM else []


MISCONCEPTIONS = (
    Misconception(
        lambda asked: sorted(ALL),
        "Not all hooks see the same graph: before autograd it has functions of torch, and behind it operators of ATen.",
    ),
    Misconception(
        lambda asked: sorted(ALL) if asked["pattern"] == TORCH else ["none"],
        "Behind autograd there are no functions of torch any more.",
    ),
    Misconception(
        _nowhere_folded,
        "Between the last two hooks a pass of Inductor folds product and sum of two dimensions into addmm.",
    ),
    Misconception(
        lambda asked: sorted(
            ALL[1:4] if asked["pattern"] == MM else ALL[4:] if asked["pattern"] == ADDMM else ["none"]
        ),
        "The fold was expected here too. It needs an mm directly before the add, which nobody else reads: with x of "
        "rank 3 a view stands between them.",
    ),
    Misconception(
        lambda asked: sorted(ALL[1:]) if asked["pattern"] == MM and "linear" in asked["spelling"] else ["none"],
        "A linear layer becomes addmm before the first hook of ATen: there is no add.",
    ),
)


def known(asked: Question) -> Known:
    """Return the hooks that see the pattern, and what known mistakes would say."""
    right = hooks(asked)
    return {"right": right, "wrong": [each for each in wrong_values(asked, MISCONCEPTIONS) if each[0] != right]}


ANSWERS = Answers(__name__)
TABLE = """
def hooks_that_see(question):
    first, *aten = question['hooks']
    linear, plus = 'linear' in question['spelling'], '+' in question['spelling']
    whole = linear or question['rank'] == 3 or question['read_again']
    seen = {
        'matmul, +': [first] * plus,
        'mm, add': [] if linear else aten if whole else aten[:3],
        'addmm': aten if linear else [] if whole else aten[3:],
    }
    return seen[question['pattern']]
"""
HEAD = "def hooks_that_see(question):\n    return "

HIDDEN = HiddenPart(
    checks=(
        Check("`F.linear`", "linear layers", 1.2, places(of(SPELLINGS[2:], [TORCH, MM, ADDMM]))),
        Check("a product that is read again", "read again", 1.3, places(of(SPELLINGS[:1], [MM, ADDMM], [True]))),
        Check("a sum in place", "in place", 1.0, places(of(SPELLINGS[1:2], [TORCH, MM, ADDMM]))),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.edited(
            "a set",
            8,
            ("[before_autograd] if '+' in spelling else []", "list({before_autograd} if '+' in spelling else set())"),
        ),
        ANSWERS.edited(
            "in another order",
            8,
            ("return aten[:-1] if folded else aten", "return (aten[:-1] if folded else aten)[::-1]"),
        ),
        ANSWERS.edited("by the number of dimensions", 8, ("question['rank'] == 2", "question['rank'] < 3")),
        ANSWERS.edited("by what stands in the text", 8, ("'linear' in spelling", "spelling.startswith('F.')")),
        ANSWERS.edited("not rank 3", 8, ("question['rank'] == 2", "not question['rank'] == 3")),
        ANSWERS.edited(
            "any pattern with mm alone",
            8,
            ("if pattern == 'addmm':\n        return aten[-1:]", "if 'add' == pattern[:3]:\n        return aten[-1:]"),
        ),
        ANSWERS.edited("last by its index", 8, ("aten[-1:] if folded", "[question['hooks'][4]] if folded")),
        Control("a table of three lines", TABLE, 8),
        ANSWERS.edited("no fold", 4, ("question['rank'] == 2 and (not question['read_again'])", "False")),
        ANSWERS.edited(
            "a fold at any rank",
            4,
            ("question['rank'] == 2 and (not question['read_again'])", "not question['read_again']"),
        ),
        ANSWERS.edited(
            "a fold although it is read",
            6.7,
            ("question['rank'] == 2 and (not question['read_again'])", "question['rank'] == 2"),
        ),
        ANSWERS.edited(
            "torch everywhere",
            4.3,
            ("return [before_autograd] if '+' in spelling else []", "return [before_autograd, *aten]"),
        ),
        ANSWERS.edited(
            "a method is a plus",
            7,
            ("[before_autograd] if '+' in spelling else []", "[before_autograd] if 'linear' not in spelling else []"),
        ),
        ANSWERS.edited("linear as product and sum", 6.8, ("if 'linear' in spelling:", "if False:")),
        ANSWERS.edited("linear never", 6.8, ("return aten if pattern == 'addmm' else []", "return []")),
        ANSWERS.edited("all but the first", 5.5, ("aten[:-1] if folded else aten", "aten")),
        ANSWERS.edited("the fold one hook earlier", 5.5, ("aten[-1:] if folded", "aten[-2:] if folded")),
        ANSWERS.edited("the last two lose the sum", 5.5, ("aten[:-1] if folded", "aten[:-2] if folded")),
        ANSWERS.edited("ranks swapped", 4, ("question['rank'] == 2", "question['rank'] == 3")),
        ANSWERS.edited("reads swapped", 2.7, ("(not question['read_again'])", "question['read_again']")),
        Control("no hook", HEAD + "[]\n", 0),
        Control("every hook", HEAD + repr(ALL) + "\n", 0),
    ),
)
