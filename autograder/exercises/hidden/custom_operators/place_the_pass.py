"""Hidden checks and controls of exercise 11.3."""

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, fx
from torch.nn import functional as F

from autograder.exercises.custom_operators.place_the_pass import (
    ADDMM,
    HOOKS,
    IN_PLACE,
    LINEAR,
    MM,
    SUMS,
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
ADDED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    SUMS[0]: lambda made, b: made + b,
    SUMS[1]: lambda made, b: b + made,
    IN_PLACE[0]: lambda made, b: made.add_(b),
}


def _program(form: str, after: str, read_again: bool) -> Callable[..., Tensor]:
    """Return the program of a form and a method; `read_again` reads the product another time."""

    def program(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        made = b if form in LINEAR else x @ w
        total = F.linear(x, w.t(), b) if form in LINEAR else ADDED[form](made, b)
        total = getattr(total, after[1:-2])() if after else total
        return total + made * 2 if read_again else total

    return program


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


@lru_cache(maxsize=256)
def _seen(form: str, after: str, rank: int, read_again: bool) -> dict[str, fx.GraphModule]:
    from course_lib.inductor_passes import graphs_at_hooks

    shape = (2, 4, 8)[-rank:]
    inputs = [torch.zeros(shape), torch.zeros(8, 8), torch.zeros(8)]
    return graphs_at_hooks(_program(form, after, read_again), inputs)


def hooks(asked: Question, form: str, after: str) -> list[str]:
    """Return the names of the hooks whose graph has the pattern."""
    seen = _seen(form, after, asked["rank"], asked["read_again"])
    return [hook for hook in asked["hooks"] if _sees(seen[hook].graph, asked["pattern"])]


def _nowhere_folded(asked: Question) -> list[str]:
    if asked["pattern"] == TORCH or "linear" in asked["spelling"]:
        return ["none"]
    return ALL[1:] if asked["pattern"] == MM else []


MISCONCEPTIONS = (
    Misconception(
        lambda asked: ALL,
        "Not all hooks see the same graph: before autograd it has functions of torch, and behind it operators of ATen.",
    ),
    Misconception(
        lambda asked: ALL if asked["pattern"] == TORCH else ["none"],
        "Behind autograd there are no functions of torch any more.",
    ),
    Misconception(
        _nowhere_folded,
        "Between the last two hooks a pass of Inductor folds product and sum of two dimensions into addmm.",
    ),
    Misconception(
        lambda asked: ALL[1:4] if asked["pattern"] == MM else ALL[4:] if asked["pattern"] == ADDMM else ["none"],
        "The fold was expected here too. It needs an mm directly before the add, which nobody else reads: with x of "
        "rank 3 a view stands between them.",
    ),
    Misconception(
        lambda asked: ALL[:1] if asked["pattern"] == TORCH and "add_(" in asked["spelling"] else ["none"],
        "The sum in place is a call of the method `add_`, and the pattern has a `+`.",
    ),
    Misconception(
        lambda asked: ALL[1:] if asked["pattern"] == MM and "linear" in asked["spelling"] else ["none"],
        "A linear layer becomes addmm before the first hook of ATen: there is no add.",
    ),
)


def known(asked: Question, form: str, after: str) -> Known:
    """Return the hooks that see the pattern, and what known mistakes would say."""
    right = hooks(asked, form, after)
    wrong = []
    for found, says in wrong_values(asked, MISCONCEPTIONS):
        mistaken = sorted(hook for hook in found if hook in ("none", *asked["hooks"]))
        if mistaken != sorted(right):
            wrong.append([mistaken, says])
    return {"right": right, "wrong": wrong}


ANSWERS = Answers(__name__)
TABLE = """
HOOKS = [f'{stage}_custom_{when}pass' for stage in ('joint', 'post_grad') for when in ('pre_', 'post_')]


def hooks_that_see(question):
    linear, plus = 'linear' in question['spelling'], '+' in question['spelling']
    whole = linear or question['rank'] == 3 or question['read_again']
    seen = {
        'matmul, +': ['pre_grad_custom_pass'] * plus,
        'mm, add': [] if linear else HOOKS if whole else HOOKS[:3],
        'addmm': HOOKS if linear else [] if whole else HOOKS[3:],
    }
    return [hook for hook in question['hooks'] if hook in seen[question['pattern']]]
"""
HEAD = "def hooks_that_see(question):\n    return "

FOLD = "question['rank'] == 2 and (not question['read_again'])"
FOLDED = "[hook for hook in aten if hook == last and folded]"
NOT_FOLDED = "[hook for hook in aten if not (hook == last and folded)]"
BEFORE = "[hook for hook in question['hooks'] if hook == first and '+' in spelling]"

HIDDEN = HiddenPart(
    checks=(
        Check("`F.linear`", "linear layers", 1, places(of(LINEAR, [TORCH, MM, ADDMM]))),
        Check("a product that is read again", "read again", 1.5, places(of(SUMS, [MM, ADDMM], read_again=True))),
        Check("a sum in place", "in place", 1, places(of(IN_PLACE, [TORCH, MM, ADDMM]))),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.edited("a set", 8, (f"return {NOT_FOLDED}", f"return list(set({NOT_FOLDED}))")),
        ANSWERS.edited("in another order", 8, (NOT_FOLDED, f"{NOT_FOLDED}[::-1]")),
        ANSWERS.edited("by the number of dimensions", 8, ("question['rank'] == 2", "question['rank'] < 3")),
        ANSWERS.edited("by what stands in the text", 8, ("'linear' in spelling", "spelling.startswith('F.')")),
        ANSWERS.edited("not rank 3", 8, ("question['rank'] == 2", "not question['rank'] == 3")),
        ANSWERS.edited(
            "any pattern with mm alone",
            8,
            (f"if pattern == 'addmm':\n        return {FOLDED}", f"if 'add' == pattern[:3]:\n        return {FOLDED}"),
        ),
        Control("a table of three lines", TABLE, 8),
        ANSWERS.edited("no fold", 4, (FOLD, "False")),
        ANSWERS.edited("a fold at any rank", 4, (FOLD, "not question['read_again']")),
        ANSWERS.edited("a fold although it is read", 6.5, (FOLD, "question['rank'] == 2")),
        ANSWERS.edited("torch everywhere", 4.5, (BEFORE, "question['hooks']")),
        ANSWERS.edited(
            "a method is a plus", 7, ("hook == first and '+' in spelling", "hook == first and 'linear' not in spelling")
        ),
        ANSWERS.edited("linear as product and sum", 7, ("if 'linear' in spelling:", "if False:")),
        ANSWERS.edited("linear never", 7, ("return aten if pattern == 'addmm' else []", "return []")),
        ANSWERS.edited("all but the first", 5.5, (NOT_FOLDED, "aten")),
        ANSWERS.edited(
            "the fold one hook earlier", 5.5, ("hook == last and folded]", "'post_grad' in hook and folded]")
        ),
        ANSWERS.edited("the last two lose the sum", 5.5, ("(hook == last and", "('post_grad' in hook and")),
        ANSWERS.edited("ranks swapped", 4, ("question['rank'] == 2", "question['rank'] == 3")),
        ANSWERS.edited("reads swapped", 2.5, ("(not question['read_again'])", "question['read_again']")),
        ANSWERS.edited(
            "the first of the list", 8, ("('pre_grad_custom_pass', 'post", "(question['hooks'][0], 'post"), below=True
        ),
        Control("no hook", HEAD + "[]\n", 0),
        Control("every hook", HEAD + repr(ALL) + "\n", 0),
    ),
)
