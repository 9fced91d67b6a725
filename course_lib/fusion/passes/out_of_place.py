"""Write `h.add_(b)`, `F.relu(h, inplace=True)` and similar calls as `h + b` and `F.relu(h)`, if the result is the same.

A fusion does not change in-place calls, because other nodes may read the memory. This pass checks that none does: the
memory belongs to no input, parameter or constant, and is not read through another view afterwards. Then later readers
of the old tensor can read a new one. In-place changes of an input are kept.

An in-place change of a tensor that was saved for the backward pass is kept too: as written, the program cannot be
trained. The cost of this pass is that the old tensor stays in memory until the new one is computed.
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map_only

from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.effects import effects_of, effects_on, forget, is_opaque, memory_of, stand_ins_of
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.passes.normalise import one_spelling
from course_lib.fusion.result import Rejected, refusal
from course_lib.fusion.rules import Objection, place_of
from course_lib.fusion.storage import saves
from course_lib.fusion.surgery import erase, new_module
from course_lib.graph.memory import storage_of
from course_lib.graph.recorder import UNKNOWN, storages_in, tensors_of
from course_lib.module_hooks import has_hooks


class OutOfPlace(GraphPass):
    """Replace operators that write in place by those that return a new tensor."""

    name = "out_of_place"

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Rewrite each in-place call whose change no other node reads; count them."""
        rewritten = 0
        rejected: list[Rejected] = []
        memories = _Memories()
        for node in list(gm.graph.nodes):
            call = read_call(node)
            if call is None or not _writes_its_operand(call):
                continue
            objection = _objection_to_module(call) or _objection_to_memory(call, memories)
            made = None if objection is not None else _functional_result(call)
            if isinstance(made, FakeTensor):
                memories.forget_readers(_rewrite(gm, call, made))
                rewritten += 1
            else:
                objection = objection or made
                assert objection is not None, "there is a result, or a reason why not"
                rejected.append(refusal(self.name, (node.name,), objection, node))
        return rewritten, rejected


def _writes_its_operand(call: Call) -> bool:
    """Return whether a call changes its operand, a tensor; `i += 1` on numbers and calls with `out=` do not."""
    return (
        call.in_place and call.arguments.get("out") is None and not isinstance(call.node.meta.get("val"), (int, float))
    )


def _objection_to_module(call: Call) -> Objection | None:
    if not call.exact_module:
        return Objection("subclass", f"{call.node.target} is a subclass, which may compute something else")
    if call.module is not None and has_hooks(call.module):
        return Objection("hooks", f"{call.node.target} has hooks, which would no longer run")
    return None


def _objection_to_memory(call: Call, memories: "_Memories") -> Objection | None:
    """Refuse a change of memory that others own, or that is read through another view afterwards."""
    target = call["input"]
    if not isinstance(target, fx.Node):
        return Objection("in place", f"{call.node} changes {target!r}, which is no value of the graph")
    sharing = [node for node in memories.sharing(target) if node < call.node]
    if not sharing:
        return Objection("shape unknown", f"the shape of {target} is not known")
    for node in sharing:
        if not _makes_its_result(node):
            return Objection("in place", f"{call.node} changes the memory of {node}, which others may read")
        late = next((user for user in node.users if call.node < user), None)
        if node is not target and late is not None:
            return Objection("in place", f"{late} reads {node}, which {call.node} has changed, through the same memory")
        keeper = next((user for user in node.users if is_opaque(user)), None)
        if keeper is not None:
            return Objection("in place", f"{keeper}{place_of(keeper)} may keep {node}: {effects_of(keeper).unseen}")
    return _objection_to_backward(call.node, sharing)


def _objection_to_backward(changing: fx.Node, sharing: list[fx.Node]) -> Objection | None:
    """Refuse a change of a tensor that was saved for the backward pass, which then fails."""
    tensors = [value for node in sharing for value in tree_leaves(node.meta.get("val"))]
    memories = {storage_of(value) for value in tensors if isinstance(value, torch.Tensor)}
    concerned = dict.fromkeys([*sharing, *(user for node in sharing for user in node.users if user < changing)])
    keeper = next((node for node in concerned if saves(node, memories)), None)
    if keeper is None:
        return None
    return Objection("in place", f"{changing} changes what {keeper} keeps for the backward pass, which therefore fails")


def _makes_its_result(node: fx.Node) -> bool:
    """Return whether a node returns a new tensor or its operand, not an input, parameter or hidden tensor."""
    if node.op in ("placeholder", "get_attr", "output") or is_opaque(node):
        return False
    given = frozenset().union(*map(memory_of, node.all_input_nodes))
    held = stand_ins_of(node.graph)
    return held is None or (memory_of(node) - given).isdisjoint(held.storages)


class _Memories:
    """The groups of nodes that may share memory, in any mode and layout."""

    def __init__(self) -> None:
        self._known: dict[fx.Node, set[fx.Node]] = {}

    def sharing(self, node: fx.Node) -> list[fx.Node]:
        """Return the nodes that may share memory with a node, itself among them; none if its shape is unknown."""
        if UNKNOWN in memory_of(node):
            return []
        found, waiting = {node}, [node]
        while waiting:
            one = waiting.pop()
            near = self._given(one) | {user for user in one.users if one in self._given(user)}
            waiting += near - found
            found |= near
        return sorted(found)

    def forget_readers(self, node: fx.Node) -> None:
        """Forget what the readers of a node may return, since they have read another node until now."""
        for user in node.users:
            self._known.pop(user, None)

    def _given(self, node: fx.Node) -> set[fx.Node]:
        if node not in self._known:
            self._known[node] = _operands_given(node)
        return self._known[node]


def _operands_given(node: fx.Node) -> set[fx.Node]:
    """Return the operands whose memory a node may return, in another mode, or for other strides or dtypes too.

    `contiguous`, `reshape`, `to` and dropout return their input or a new tensor. The node is tried with operands of
    several layouts and dtypes, in training and in evaluation.
    """
    if node.op not in ("call_function", "call_method", "call_module") or not tensors_of(node.meta.get("val")):
        return set()
    gives = effects_of(node).gives
    found = {operand for operand in node.all_input_nodes if not gives.isdisjoint(memory_of(operand))}
    if is_opaque(node):
        return found
    for values in _variations(node.all_input_nodes):
        gives = effects_on(node, values).gives
        found |= {operand for operand, value in values.items() if not gives.isdisjoint(storages_in(value))}
    return found


def _variations(operands: Sequence[fx.Node]) -> Iterator[Mapping[fx.Node, object]]:
    """Yield fake values of operands: of other dtypes, and laid out in other ways."""
    for dtype in (None, torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for is_reversed in (False, True):
            like = functools.partial(_like, dtype=dtype, is_reversed=is_reversed)
            yield {operand: tree_map_only(torch.Tensor, like, operand.meta.get("val")) for operand in operands}


def _like(tensor: torch.Tensor, dtype: torch.dtype | None, is_reversed: bool) -> torch.Tensor:
    dims = range(tensor.ndim)[::-1] if is_reversed else range(tensor.ndim)
    kind = dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype
    with tensor.fake_mode if isinstance(tensor, FakeTensor) else contextlib.nullcontext():
        made = torch.empty([tensor.shape[dim] for dim in dims], dtype=kind, device=tensor.device)
        return made.permute(tuple(dims))


def _functional(call: Call) -> Call:
    """Return the same call, but with a new tensor as its result."""
    arguments = {name: False if name == "inplace" else value for name, value in call.arguments.items()}
    return replace(call, arguments=arguments, in_place=False)


def _functional_result(call: Call) -> FakeTensor | Objection:
    """Return the fake result of the functional call, or an objection if its type, shape or strides differ."""
    now = call.node.meta.get("val")
    if not isinstance(now, FakeTensor):
        return Objection("shape unknown", f"the shape of {call.node} is not known")
    if isinstance(call.module, nn.Dropout):
        with now.fake_mode:
            return torch.empty_strided(now.shape, now.stride(), dtype=now.dtype, device=now.device)  # type: ignore[return-value]  # within the mode
    function, args, kwargs = one_spelling(_functional(call))
    values: Any = fx.map_arg([list(args), kwargs], lambda node: node.meta.get("val"))  # type: ignore[type-var]  # any nodes
    with now.fake_mode, torch.no_grad():
        then = function(*values[0], **values[1])
    assert isinstance(then, FakeTensor), "an operator of the table gives one tensor"
    for what, found, wanted in (
        ("dtype", then.dtype, now.dtype),
        ("shape", then.shape, now.shape),
        ("strides", then.stride(), now.stride()),
    ):
        if found != wanted:
            reason = f"{call.node} keeps the {what} {wanted}, and a new tensor would have {found}"
            return Objection("dtype" if what == "dtype" else "shape", reason)
    return then


def _rewrite(gm: fx.GraphModule, call: Call, made: FakeTensor) -> fx.Node:
    """Replace this call by the functional call and return it; later readers of the changed tensor read the new one."""
    node, target = call.node, call["input"]
    assert isinstance(target, fx.Node), "the objections have seen a node"
    with node.graph.inserting_before(node):
        if isinstance(call.module, nn.Dropout):
            module = nn.Dropout(call.module.p).train(call.module.training)
            new = new_module(gm, "dropout", module)(fx.Proxy(target)).node
        else:
            function, args, kwargs = one_spelling(_functional(call))
            new = node.graph.call_function(function, args, kwargs)  # type: ignore[arg-type]  # arguments of another node
    target.replace_all_uses_with(new, delete_user_cb=lambda user: node < user)
    node.replace_all_uses_with(new)
    new.meta = dict(node.meta) | {"val": made}
    forget(new)
    erase((node,))
    _describe_views(new, target)
    return new


def _describe_views(new: fx.Node, old: fx.Node) -> None:
    """Correct the fake tensors (`meta["val"]`) of the views of `new`, after `new` has replaced `old` in the graph.

    Those that shared memory with the fake tensor of `old` must share memory with that of `new`.
    """
    memory = storage_of(old.meta["val"])
    for user in sorted(new.users):
        now = user.meta.get("val")
        if not isinstance(now, FakeTensor) or storage_of(now) != memory:
            continue
        shared = new.meta["val"]
        with now.fake_mode:
            user.meta["val"] = shared.as_strided(now.shape, now.stride(), now.storage_offset())
        forget(user)
        _describe_views(user, old)
