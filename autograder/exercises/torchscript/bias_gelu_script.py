"""Exercise 03.4: bias and GELU in TorchScript, forward and backward, each in one fusion group."""

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.host import comparison
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.archive import ArchiveAnswer, every_node, groups, outside
from autograder.host.kinds.callable import Case, Reply, as_tuple
from autograder.host.kinds.misconceptions import Misconception, explained
from course_lib.verify.error_rule import deviation

Run = Callable[[ArchiveAnswer, Draw], None]
FORWARD, BACKWARD = "bias_gelu", "bias_gelu_backward"
SHAPES = "view reshape flatten unflatten squeeze unsqueeze select slice permute transpose t movedim expand expand_as"
SHAPES += " view_as reshape_as unbind contiguous detach alias"
REDUCTIONS = {f"aten::{name}" for name in ("sum", "sum_to_size", "mean", "einsum", *SHAPES.split())}
"""Operators that may run outside the backward's group: the bias gradient is a sum over rows, in any spelling."""


def gelu(h: Tensor) -> Tensor:
    """Return the tanh approximation of GELU."""
    return 0.5 * h * (1 + torch.tanh(_argument(h)))


def forward(x: Tensor, bias: Tensor) -> Tensor:
    """Return the expected result of `bias_gelu`."""
    return gelu(x + bias)


def backward(grad: Tensor, x: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """Return the expected result of `bias_gelu_backward`: the gradients with respect to x and the bias."""
    leaves = [x.detach().clone().requires_grad_(), bias.detach().clone().requires_grad_()]
    return torch.autograd.grad(forward(*leaves), leaves, grad)


def _gradients(grad: Tensor, x: Tensor, bias: Tensor, slope: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    by_x = slope(x + bias) * grad
    return by_x, by_x.sum_to_size(bias.shape)


def _argument(h: Tensor) -> Tensor:
    """Return the argument u of tanh."""
    return math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)


def _by_autograd(function: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    at = at.detach().clone().requires_grad_()
    return torch.autograd.grad(function(at).sum(), at)[0]


def _slope(
    h: Tensor,
    *,
    first: float = 1.0,
    second: float = 1.0,
    outer: Callable[[Tensor], Tensor] = lambda h: h,
    of_tanh: Callable[[Tensor], Tensor] = lambda u: _by_autograd(torch.tanh, u),
    of_argument: Callable[[Tensor], Tensor] = lambda h: _by_autograd(_argument, h),
) -> Tensor:
    """Return the derivative of `gelu`, with its two summands times `first` and `second`, or another factor in it."""
    u = _argument(h)
    return first * 0.5 * (1 + torch.tanh(u)) + second * 0.5 * outer(h) * of_tanh(u) * of_argument(h)


ROOT = math.sqrt(2 / math.pi)
CHAIN = "Chain rule inside tanh: its derivative is multiplied by du/dh, with u the argument of tanh. "
PRODUCT = "Product rule: h stands before the bracket and inside tanh; "
HALVES = "Both terms of the product rule keep the 0.5 of the formula; "
WRONG_SLOPES: Sequence[tuple[Callable[[Tensor], Tensor], str]] = (
    (lambda h: _slope(h, second=0.0), f"{PRODUCT}the second term is missing."),
    (lambda h: _slope(h, first=0.0), f"{PRODUCT}the first term, 0.5 * (1 + t), is missing."),
    (lambda h: _slope(h, second=-1.0), f"{PRODUCT}the two terms are added, not subtracted."),
    (lambda h: _slope(h, outer=torch.ones_like), f"{PRODUCT}the second term has lost its factor h."),
    (lambda h: _slope(h, first=2.0), f"{HALVES}the first one has lost it."),
    (lambda h: _slope(h, second=2.0), f"{HALVES}the second one has lost it."),
    (lambda h: _slope(h, first=2.0, second=2.0), f"{HALVES}both have lost it."),
    (lambda h: _slope(h, of_tanh=lambda u: 1 - torch.tanh(u)), "The derivative of tanh is 1 - t * t, not 1 - t."),
    (lambda h: _slope(h, of_tanh=lambda u: 1 + torch.tanh(u) ** 2), "The derivative of tanh is 1 - t * t: a minus."),
    (lambda h: _slope(h, of_argument=torch.ones_like), f"{CHAIN}du/dh is missing."),
    (
        lambda h: _slope(h, of_argument=lambda h: _by_autograd(_argument, h) / ROOT),
        f"{CHAIN}sqrt(2/pi) is missing in du/dh.",
    ),
    (
        lambda h: _slope(h, of_argument=lambda h: torch.full_like(h, ROOT)),
        f"{CHAIN}The cubic term of u was not derived.",
    ),
    (
        lambda h: _slope(h, of_argument=lambda h: ROOT * (1 + 0.044715 * h**2)),
        "The derivative of 0.044715 * h**3 is 3 * 0.044715 * h**2; the 3 is missing.",
    ),
    (
        lambda h: _slope(h, of_argument=lambda h: ROOT * (1 + 3 * 0.044715 * h)),
        "The derivative of 0.044715 * h**3 is 3 * 0.044715 * h**2; it has h in place of h**2.",
    ),
)
"""Mistakes in the slope of GELU, and what is said of them."""

NO_GRAD = "Chain rule: the incoming gradient `grad` has to be multiplied in."
FIRST_ONLY = "The bias gradient was summed over the first dimension only; sum over all but the last."
MISCONCEPTIONS = {
    FORWARD: (
        Misconception(
            lambda x, b: torch.nn.functional.gelu(x + b), "This is the erf form of GELU; the task is its tanh formula."
        ),
        Misconception(lambda x, b: gelu(x) + b, "The bias was added after the activation; it belongs inside."),
        Misconception(
            lambda x, b: 0.5 * (x + b) * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + b))),
            "The cubic term is missing: the argument of tanh is sqrt(2/pi) * (h + 0.044715 * h**3).",
        ),
    ),
    BACKWARD: (
        Misconception(
            lambda g, x, b: (backward(g, x, b)[0],) * 2,
            "The bias gradient was not summed: one bias is added to every row, so its gradient is a sum over all rows.",
        ),
        Misconception(
            lambda g, x, b: (backward(g, x, b)[0], backward(g, x, b)[0].sum(0)),
            FIRST_ONLY,
        ),
        *(Misconception(functools.partial(_gradients, slope=wrong), says) for wrong, says in WRONG_SLOPES),
        Misconception(
            lambda g, x, b: _gradients(torch.ones_like(g), x, b, _slope),
            NO_GRAD,
        ),
    ),
}


def operands(draw: Draw, *shape: int) -> tuple[Tensor, Tensor]:
    """Return an x of this shape and a bias for its last dimension."""
    return draw.normal(*shape), draw.normal(shape[-1])


def forwards(shapes: Sequence[tuple[int, ...]]) -> Callable[[Draw], list[Case]]:
    """Return calls of the forward function."""
    return lambda draw: [Case(operands(draw, *s), label=f"for x of shape {s}") for s in shapes]


def backwards(shapes: Sequence[tuple[int, ...]]) -> Callable[[Draw], list[Case]]:
    """Return calls of the backward function."""
    return lambda draw: [Case((draw.normal(*s), *operands(draw, *s)), label=f"for x of shape {s}") for s in shapes]


def agrees(name: str, cases: Callable[[Draw], list[Case]], *, counted: Collection[str] = ()) -> Run:
    """Return a check that the scripted function equals its formula in several calls after one load.

    A misconception costs the points of a check whose sentence is among `counted`; elsewhere it is taken for right. A
    backward that leaves out the incoming gradient is the gradient of nothing, and costs those of every check.
    """
    reference: Callable[..., Any] = forward if name == FORWARD else backward
    names = {FORWARD: ("the output",), BACKWARD: ("the gradient by x", "the gradient by the bias")}[name]

    def run(answer: ArchiveAnswer, draw: Draw) -> None:
        calls = cases(draw)
        if name == BACKWARD:
            require_derived(answer, calls[0], draw.normal(8, 16).double())
        for outputs, case in zip(answer.run(answer.function(name), calls), calls, strict=True):
            try:
                _require(outputs, case, reference, names)
            except CheckFailedError as error:
                reply = Reply(outputs, len(names) > 1, (), (), ())
                said = explained(reply, case, names, MISCONCEPTIONS[name])
                if not said or said in (*counted, NO_GRAD):
                    raise CheckFailedError(f"{name}: {said or error}") from None

    return run


def every(name: str) -> tuple[str, ...]:
    """Return the sentences of all misconceptions about a function."""
    return tuple(misconception.says for misconception in MISCONCEPTIONS[name])


def _require(outputs: tuple[Tensor, ...], case: Case, reference: Callable[..., Any], names: Sequence[str]) -> None:
    eagers, truths = reference(*case.args), reference(*[a.double() for a in case.args])
    pairs = zip(as_tuple(truths), as_tuple(eagers), strict=True)
    if len(outputs) != len(names):
        raise CheckFailedError(f"it returned {len(outputs)} tensors; expected {len(names)}: {', '.join(names)}.")
    for actual, (truth, eager), what in zip(outputs, pairs, names, strict=True):
        comparison.require_form(actual, eager, what)
        if not deviation(actual, truth, eager, magnitude=_magnitude(case, actual)).within_bound:
            comparison.require_close(actual, truth, eager, what, case.where)


def _magnitude(case: Case, output: Tensor) -> float:
    """Return how large the numbers are that are added up for an output; where they cancel, the output is smaller."""
    *grad, x, bias = case.args
    if not x.numel():
        return 0.0
    if not grad:
        return float((x + bias).abs().max())  # 0.5 * h and 0.5 * h * tanh(...)
    return 1.2 * float(grad[0].abs().max()) * (x.numel() / output.numel())  # no slope of GELU is larger than 1.2


def one_group(name: str, cases: Callable[[Draw], list[Case]]) -> Run:
    """Return a check that one group contains all arithmetic of each call, after a fresh load, with right results.

    Only the sum over rows may run outside the group.
    """
    allowed = REDUCTIONS if name == BACKWARD else set()
    outside_too = " Outside it the backward may sum over rows and change shapes." if allowed else ""

    def run(answer: ArchiveAnswer, draw: Draw) -> None:
        archive = answer.function(name)
        for case in cases(draw):
            graph = answer.optimised(archive, [case])
            found, alone = groups(graph), [kind for kind in outside(graph) if kind not in allowed]
            answer.counted[f"groups_{name.removeprefix('bias_gelu_')}"] = len(found)
            if len(found) != 1 or alone:
                listed = ", ".join(alone) or "nothing"
                raise CheckFailedError(
                    f"{name} runs as {len(found)} fusion groups, and alone outside of them: {listed}{case.where}. One "
                    f"group should hold everything elementwise: no matrix product, no copies.{outside_too}"
                )
            if not CURVES & set(found[0]):
                raise CheckFailedError(
                    f"{name} has a group of {', '.join(found[0])}: none of tanh, sigmoid, exp, gelu, erf is in it."
                )
        agrees(name, cases)(answer, draw)

    return run


FUNCTIONS = "tanh sigmoid exp gelu erf silu cosh sinh sin cos softmax"
CURVES = {f"aten::{name}" for name in FUNCTIONS.split()}
POWERS = CURVES | {"aten::pow"}  # a power of a number is a curve, too
BEFORE = "add sub rsub mul multiply div true_divide divide neg negative square addcmul addcdiv reciprocal sqrt rsqrt"
BEFORE += " lerp zeros_like ones_like full_like clone add_ sub_ mul_ div_"
ARITHMETIC = {f"aten::{name}" for name in BEFORE.split()} | REDUCTIONS | POWERS
NUMBERS = {f"aten::{name}" for name in ("item", "Float", "Int", "FloatImplicit", "IntImplicit", "ScalarImplicit")}
STEP = 2.0**-30  # between arguments whose slopes are compared; added to numbers in single precision, it is not rounded
ROUGH = 2e-15  # by hand, slopes change by 1e-16 besides what their arguments change; with quotients, 1e-14 and more
MOST_CURVES, MOST_POWERS = 2, 5  # by hand one curve is enough, with three powers; more than four values give a slope


def require_derived(answer: ArchiveAnswer, case: Case, x: Tensor) -> None:
    """Raise `CheckFailedError` for a derivative that is made of several values of the function.

    In single precision, two values are far too few for a slope. So no others are allowed, in no other precision, in no
    loop, in no tensor with more elements than x, which joins or a tensor of numbers would make, and in no numbers of
    Python. What comes by another way in double precision shows in the slopes at `x`: a quotient is rough.
    """
    graph = answer.optimised(answer.function(BACKWARD), [case])
    nodes = [node for node in every_node(graph) if node.tensors]
    kinds = [node.kind for node in nodes]
    last = max((place for place, kind in enumerate(kinds) if kind in POWERS), default=0)
    if other := [node.kind for node in every_node(graph) if node.reads and node.kind in NUMBERS]:
        found = f"makes numbers of Python, by {other[0]}"
    elif other := [n.kind for n in nodes if n.kind in ("aten::to", "aten::type_as")]:
        found = f"changes the precision, by {other[0]}"
    elif other := [kind for kind in kinds[:last] if _makes(kind) and kind not in ARITHMETIC]:
        found = f"puts what {other[0]} makes into a curve"
    elif _most(graph, CURVES) > MOST_CURVES or _most(graph, POWERS) > MOST_POWERS:
        found = "computes curves at many places"
    elif _is_rough(answer, x):
        found = "gives slopes in double precision that are rough, or rounded"
    else:
        return
    raise CheckFailedError(
        f"{BACKWARD} {found}, as for a difference quotient. Derive the formula by hand: the product rule for 0.5 * h "
        f"and the bracket, and the chain rule inside tanh. One tanh is enough: at most {MOST_CURVES} values of curves "
        "are taken, without a cast."
    )


def _is_rough(answer: ArchiveAnswer, x: Tensor) -> bool:
    """Tell whether slopes in double precision jump between arguments that lie near each other, or stay as they are."""
    near = [
        Case((torch.ones_like(x), x + STEP * at, torch.zeros_like(x[0])), label="in double precision")
        for at in range(3)
    ]
    outputs = [each[0].double() for each in answer.run(answer.function(BACKWARD), near) if each]
    if len(outputs) < len(near) or any(each.shape != x.shape for each in outputs):
        return False  # the comparison with the right gradients says what is wrong
    first, second = outputs[1] - outputs[0], outputs[2] - outputs[1]
    stays = bool((outputs[0] != outputs[0].flatten()[0]).any()) and float((first == 0).double().mean()) > 0.5
    return stays or not float((second - first).square().mean().sqrt()) < ROUGH


def _makes(kind: str) -> bool:
    return kind == "prim::Constant" or kind.startswith("aten::")


def _most(nodes: Sequence[Any], kinds: Collection[str]) -> int:
    """Return how many operators of these kinds one run calls: of one branch, and in a loop more than are allowed."""
    count = 0
    for node in nodes:
        inner = max(_most(each, kinds) for each in (*node.blocks, node.subgraph))
        count += (node.kind in kinds) + inner * (MOST_POWERS + 1 if node.kind == "prim::Loop" else 1)
    return count


SMALL = [(4, 8), (3, 5)]

EXERCISE = Exercise(
    title="Bias and GELU in one group",
    kind=Kind.ARCHIVE,
    entry_point=FORWARD,
    points=15,
    masked=("course_lib.kernels", "course_lib.fusion"),  # they contain bias and GELU with the derivative
    checks=(
        Check("the output is GELU of x + bias", "values", 2, agrees(FORWARD, forwards(SMALL), counted=every(FORWARD))),
        Check(
            "both gradients, of a matrix", "gradients", 4, agrees(BACKWARD, backwards(SMALL), counted=every(BACKWARD))
        ),
        Check("the forward is one group", "one group", 2, one_group(FORWARD, forwards([(4, 8)]))),
        Check("the backward's arithmetic is one group", "one group", 2, one_group(BACKWARD, backwards([(4, 8)]))),
    ),
    hints=(
        "Look at the formula of the section above with h = x + bias; the backward needs its derivative by h, "
        "multiplied by grad, and then summed over rows for the bias.",
        "Name t = tanh(...) first. The slope is 0.5 * (1 + t), plus 0.5 * h times the derivative of t by h. "
        "Both functions take tensors only, so no annotation is needed.",
        "The derivative of tanh(u) is (1 - t * t) * du/dh, with du/dh = 0.79788456 * (1 + 3 * 0.044715 * h * h). "
        "sum_to_size(bias.shape) sums over whatever the bias was broadcast along.",
    ),
)
