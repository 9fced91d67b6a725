"""Read the parts of which ATen makes larger operators as these operators, so that passes find them.

`make_fx`, and an exported program after `run_decompositions`, hold no `linear`: it is `t`, `view`, `addmm` and `view`.
`matmul` of more dimensions is `expand`, `view`, `bmm` and `view`; LayerNorm and BatchNorm are operators with three
results. PyTorch runs the same kernels for the operator as for its parts, so that no number changes.

`fuse` works on a graph that is written so, and gives it only if a pass fuses something in it. A part that somebody else
reads, changes between the parts, and sizes that are not known leave a place as it is.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.fusion.calls import swapped_dimensions
from course_lib.fusion.effects import is_pure, memory_of
from course_lib.fusion.expressions.contractions import contraction_of
from course_lib.fusion.operands import TensorFacts, tensor_facts
from course_lib.fusion.passes.dead_code import DeadCode
from course_lib.fusion.storage import Writers, mutating_nodes
from course_lib.fusion.surgery import copy_of, put_in_place_of

aten = torch.ops.aten
_SAME_ORDER = (aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.clone.default)
_NUMBERS = (aten.scalar_tensor.default, aten.full.default)


@dataclass(frozen=True)
class Whole:
    """An operator whose parts stand in a graph."""

    anchor: fx.Node  # the part that gives the result
    inside: tuple[fx.Node, ...]  # the parts that only the next one may read, the anchor among them
    function: Callable[..., Any]
    operands: tuple[object, ...]  # what the function takes, by position


def in_whole_operators(gm: fx.GraphModule) -> fx.GraphModule:
    """Return a copy of a graph with shapes, in which operators stand in place of their parts; `gm` if it has none."""
    if not any(node.op == "call_function" and node.target in _READERS for node in gm.graph.nodes):
        return gm
    if gm.graph.find_nodes(op="call_function", target=torch.amp.autocast_mode._enter_autocast):
        return gm  # autocast treats an operator in another way than its parts
    copied = copy_of(gm)
    DeadCode().transform(copied)  # autograd leaves nodes behind that nothing reads
    writers = mutating_nodes(copied.graph)
    found = False
    for node in list(copied.graph.nodes):  # one by one: what stands in place of parts is an operand of later ones
        for whole in _found(node, writers):
            _put_in_place(whole)
            found = True
    return copied if found else gm


def _found(node: fx.Node, writers: Writers) -> Iterator[Whole]:
    """Yield the operator whose main part is `node`, if it may stand in place of the parts."""
    reader = _READERS.get(node.target) if node.op == "call_function" and node.users else None
    whole = None if reader is None or any(value for value in node.kwargs.values()) else reader(node)
    if whole is not None and _reads_the_same(whole, writers) and _gives_the_same(whole):
        yield whole


def _put_in_place(whole: Whole) -> None:
    """Write an operator in place of its parts, under the name of the last one, and erase what nothing reads then."""
    operands = {f"operand_{number}": value for number, value in enumerate(whole.operands)}
    bypassed = _before(whole)
    name = whole.anchor.name
    new = put_in_place_of(whole.anchor, lambda **given: whole.function(*given.values()), operands)
    for node in sorted({*whole.inside, *bypassed}, reverse=True):
        if not node.users:
            node.graph.erase_node(node)
    new.name = name  # what is said of the match, is said of a node that the given graph has


def _before(whole: Whole) -> list[fx.Node]:
    """Return the nodes between the operands and the parts, which the operator does not need."""
    reached = list(whole.inside)
    for node in reached:  # grows while it is read
        reached += [one for one in node.all_input_nodes if one not in reached and one not in whole.operands]
        if len(reached) > len(whole.inside) + 16:
            break
    return [node for node in reached if node not in whole.inside and node.op == "call_function" and is_pure(node)]


def _reads_the_same(whole: Whole, writers: Writers) -> bool:
    """Return whether nobody reads the parts inside, and nothing is changed or switched between the parts."""
    inside, anchor = set(whole.inside), whole.anchor
    if any(user not in inside for node in inside - {anchor} for user in node.users):
        return False
    involved = sorted({*inside, *_before(whole)})
    first = involved[0]
    if any(first < node < anchor for node in writers.opaque):
        return False
    operands = [one for one in whole.operands if isinstance(one, fx.Node)]
    read = frozenset().union(*map(memory_of, (*involved, *operands)))
    return not any(first < node < anchor for node in writers.changing(read))


def _gives_the_same(whole: Whole) -> bool:
    """Return whether the operator takes these operands, and gives the same shape, strides and type."""
    now = whole.anchor.meta.get("val")
    if not isinstance(now, FakeTensor) or tensor_facts(whole.anchor) is None:
        return False
    values = [value.meta.get("val") if isinstance(value, fx.Node) else value for value in whole.operands]
    try:
        with now.fake_mode, torch.no_grad():
            then = whole.function(*values)
    except Exception:  # whatever the operator says about its operands
        return False
    return (then.shape, then.stride(), then.dtype) == (now.shape, now.stride(), now.dtype)


def _same_elements(node: fx.Node) -> Iterator[fx.Node]:
    """Yield a node, and those of which it is a view or copy with all elements in the same order; the nearest first."""
    yield node
    while node.op == "call_function" and isinstance(node.args[0] if node.args else None, fx.Node):
        source: Any = node.args[0]
        first, second = tensor_facts(node), tensor_facts(source)
        if first is None or second is None or first.dtype != second.dtype:
            return
        if node.target not in _SAME_ORDER and not (node.target is aten.expand.default and first == second):
            return
        node = source
        yield node


def _of_shape(node: object, shape: Sequence[int]) -> fx.Node | None:
    """Return the first source of a node with the same elements in this shape, or None."""
    sources = _same_elements(node) if isinstance(node, fx.Node) else ()
    fitting = [one for one in sources if (facts := tensor_facts(one)) is not None and facts.shape == tuple(shape)]
    return fitting[-1] if fitting else None


def _reshaped(node: fx.Node) -> tuple[fx.Node, tuple[int, ...]]:
    """Return the view that alone reads a node, or the node, and its shape."""
    (user, *others) = node.users
    is_view = not others and user.op == "call_function" and user.target in _SAME_ORDER[:3] and user.args[0] is node
    result = user if is_view else node
    facts = tensor_facts(result)
    return result, () if facts is None else facts.shape


def _rows(node: object) -> TensorFacts | None:
    """Return the facts of a matrix, or None."""
    facts = tensor_facts(node) if isinstance(node, fx.Node) else None
    return facts if facts is not None and len(facts.shape) == 2 else None


def _transposed(node: object) -> fx.Node | None:
    """Return the matrix of which a node is the transpose, or None."""
    if not isinstance(node, fx.Node) or _rows(node) is None:
        return None
    swapped = swapped_dimensions(node)
    is_swap = node.target is aten.t.default or (swapped is not None and {dim % 2 for dim in swapped} == {0, 1})
    is_swap = is_swap or (node.target is aten.transpose.int and {dim % 2 for dim in node.args[1:]} == {0, 1})  # type: ignore[operator]  # integers
    return node.args[0] if is_swap and isinstance(node.args[0], fx.Node) else None


def _product_of_rows(node: fx.Node, x: object, second: object, bias: tuple[object, ...] = ()) -> Whole | None:
    """Read `mm` or `addmm`, with views around it: `linear` of a weight that the program holds, or else `matmul`."""
    weight, columns = _transposed(second), _rows(second)
    if columns is None or _rows(x) is None:
        return None
    is_linear = weight is not None and (weight.op in ("get_attr", "placeholder") or bool(bias))
    result, shape = _reshaped(node)
    found = _of_shape(x, (*shape[:-1], columns.shape[0])) if shape[-1:] == columns.shape[1:] else None
    source: object = found
    if found is None or len(shape) < 2:
        result, source = node, x
    inside = (node,) if result is node else (node, result)
    if is_linear:
        return Whole(result, inside, F.linear, (source, weight, *bias))
    return None if bias or result is node else Whole(result, inside, torch.matmul, (source, second))


def _addmm(node: fx.Node) -> Whole | None:
    if len(node.args) != 3:
        return None
    bias, x, second = node.args
    facts, columns = tensor_facts(bias) if isinstance(bias, fx.Node) else None, _rows(second)
    if facts is None or columns is None or facts.shape != columns.shape[1:] or _transposed(second) is None:
        return None
    return _product_of_rows(node, x, second, (bias,))


def _mm(node: fx.Node) -> Whole | None:
    return _product_of_rows(node, *node.args) if len(node.args) == 2 else None


def _bmm(node: fx.Node) -> Whole | None:
    """Read `bmm` with what stands around it as a product, or else as `einsum`."""
    found = contraction_of(node)
    if found is None:
        return _product(node)
    operands = (found.equation, found.first, found.second)
    return Whole(found.inside[-1], found.inside, torch.einsum, operands)


def _product(node: fx.Node) -> Whole | None:
    """Read `bmm` with views around it as `matmul`, or as `linear` if the second factor is one weight for all rows."""
    first, second = (tensor_facts(one) if isinstance(one, fx.Node) else None for one in node.args[:2])
    result, shape = _reshaped(node)
    if first is None or second is None or len(shape) < 3 or result is node:
        return None
    if math.prod(shape[:-2]) != first.shape[0] or shape[-2:] != (first.shape[1], second.shape[2]):
        return None
    a = _of_shape(node.args[0], (*shape[:-1], first.shape[2]))
    b = _of_shape(node.args[1], (*shape[:-2], *second.shape[1:]))
    if a is None or b is None:
        return None
    if b.target is aten.expand.default and _rows(b.args[0]) is not None:
        weight = _transposed(b.args[0])
        if weight is not None and weight.op in ("get_attr", "placeholder"):
            return Whole(result, (node, result), F.linear, (a, weight))
        b = b.args[0]  # type: ignore[assignment]  # a matrix, as just seen
    return Whole(result, (node, result), torch.matmul, (a, b))


def _first_result(node: fx.Node) -> fx.Node | None:
    """Return the node that takes the first of several results, if nothing takes the others."""
    (user, *others) = node.users
    takes = not others and user.op == "call_function" and user.args[1:] == (0,)
    return user if takes and getattr(user.target, "__name__", "") == "getitem" else None


def _layer_norm(node: fx.Node) -> Whole | None:
    result = _first_result(node)
    if result is None or len(node.args) != 5:
        return None
    return Whole(result, (node, result), F.layer_norm, node.args)


def _batch_norm(node: fx.Node) -> Whole | None:
    """Read a BatchNorm that evaluates."""
    result, args = _first_result(node), list(node.args)
    has_flag = node.target is aten.native_batch_norm.default and len(args) == 8
    training = args.pop(5) if has_flag else False
    if result is None or training is not False or len(args) != 7:
        return None
    x, weight, bias, mean, variance, momentum, eps = args
    return Whole(result, (node, result), F.batch_norm, (x, mean, variance, weight, bias, False, momentum, eps))


def _convolution(node: fx.Node) -> Whole | None:
    if len(node.args) != 9 or node.args[6] is not False or not isinstance(node.args[1], fx.Node):
        return None
    x, weight, bias, stride, padding, dilation, _, _, groups = node.args
    facts = tensor_facts(node.args[1])
    function = None if facts is None else {3: F.conv1d, 4: F.conv2d}.get(len(facts.shape))
    if function is None:
        return None
    return Whole(node, (node,), function, (x, weight, bias, stride, padding, dilation, groups))


def _where(node: fx.Node) -> Whole | None:
    """Read a tensor that holds one number as that number."""
    operands = [_number(one) for one in node.args]
    if len(operands) != 3 or operands == list(node.args):
        return None
    return Whole(node, (node,), torch.where, tuple(operands))


def _number(value: object) -> object:
    if not isinstance(value, fx.Node) or value.op != "call_function" or value.target not in _NUMBERS:
        return value
    facts, number = tensor_facts(value), value.args[-1]
    known = facts is not None and facts.shape == () and facts.dtype.is_floating_point
    return number if known and type(number) in (int, float) else value


_READERS: dict[Any, Callable[[fx.Node], Whole | None]] = {
    aten.addmm.default: _addmm,
    aten.mm.default: _mm,
    aten.bmm.default: _bmm,
    aten.native_layer_norm.default: _layer_norm,
    aten.native_batch_norm.default: _batch_norm,
    aten._native_batch_norm_legit_no_training.default: _batch_norm,
    aten.convolution.default: _convolution,
    aten.where.self: _where,
}
