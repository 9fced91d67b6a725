"""Write `h.add_(b)`, `F.relu(h, inplace=True)` and similar calls as `h + b` and `F.relu(h)`, if the result is the same.

A fusion does not change in-place calls, because other nodes may read the memory. This pass checks that none does: the
memory belongs to no input, parameter or constant, and is not read through another view afterwards. Then later readers
of the old tensor can read a new one. In-place changes of an input are kept.

An in-place change of a tensor that was saved for the backward pass is kept too: as written, the program cannot be
trained. The cost of this pass is that the old tensor stays in memory until the new one is computed.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves

from course_lib.fusion.calls import Call, module_of, read_call
from course_lib.fusion.effects import is_pure, mutates
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.passes.normalise import one_spelling
from course_lib.fusion.result import Rejected, refusal
from course_lib.fusion.rules import Objection
from course_lib.fusion.storage import saves
from course_lib.fusion.surgery import erase, new_module
from course_lib.graph.hooks import has_hooks
from course_lib.graph.memory import storage_of

# Calls that return their input itself, or a new tensor, depending on layout, type or mode.
_MAY_GIVE_THEIR_INPUT = frozenset(
    """
    contiguous reshape reshape_as flatten ravel to type type_as float double half bfloat16 cpu cuda dropout
    alpha_dropout feature_alpha_dropout native_dropout
    """.split()  # noqa: SIM905  # a list of so many names reads best as a block
)


class OutOfPlace(GraphPass):
    """Replace operators that write in place by those that return a new tensor."""

    name = "out_of_place"

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Rewrite each in-place call whose change no other node reads; count them."""
        rewritten = 0
        rejected: list[Rejected] = []
        memories: _Memories | None = None
        for node in list(gm.graph.nodes):
            call = read_call(node)
            if call is None or not _writes_its_operand(call):
                continue
            memories = memories or _Memories(gm.graph)
            objection = _objection_to_module(call) or _objection_to_memory(call, memories)
            made = None if objection is not None else _functional_result(call)
            if isinstance(made, FakeTensor):
                _rewrite(gm, call, made, memories)
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
    if node.op in ("placeholder", "get_attr", "output"):
        return False
    if node.op == "call_module":
        module = module_of(node)
        return type(module).__module__.startswith("torch.nn.") and not has_hooks(module)
    return read_call(node) is not None or is_pure(node) or (node.op == "call_method" and mutates(node))


class _Memories:
    """The groups of nodes that may share memory, in any mode and layout."""

    def __init__(self, graph: fx.Graph) -> None:
        same: dict[int, int] = {}

        def find(memory: int) -> int:
            while same.setdefault(memory, memory) != memory:
                memory = same[memory]
            return memory

        known: dict[fx.Node, list[int]] = {}
        for node in graph.nodes:
            values = tree_leaves(node.meta.get("val"))
            known[node] = [storage_of(value) for value in values if isinstance(value, torch.Tensor)]
            operands = node.all_input_nodes if _may_give_its_input(node) else []
            together = [*known[node], *(memory for operand in operands for memory in known[operand])]
            for memory in together[1:]:
                same[find(memory)] = find(together[0])
        self._group = {node: find(memories[0]) for node, memories in known.items() if memories}
        self._members: dict[int, list[fx.Node]] = {}
        for node, group in self._group.items():
            self._members.setdefault(group, []).append(node)

    def sharing(self, node: fx.Node) -> list[fx.Node]:
        """Return the nodes that may share memory with a node, itself among them; none if its shape is unknown."""
        return self._members.get(self._group.get(node, 0), [])

    def replaced(self, old: fx.Node, new: fx.Node, made: torch.Tensor) -> None:
        """Record that `new`, in new memory, replaces `old`; later nodes that shared the old memory share the new."""
        members, group = self.sharing(old), storage_of(made)
        self._members[self._group[old]] = [node for node in members if node < old]
        self._members[group] = [new, *(node for node in members if old < node)]
        self._group.update(dict.fromkeys(self._members[group], group))


def _may_give_its_input(node: fx.Node) -> bool:
    if node.op == "call_module":
        return "Dropout" in type(module_of(node)).__name__ or isinstance(module_of(node), (nn.Identity, nn.Flatten))
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        target = target._schema.name.rpartition("::")[2]
    name = str(getattr(target, "__name__", target))
    return node.op in ("call_function", "call_method") and name.rstrip("_") in _MAY_GIVE_THEIR_INPUT


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


def _rewrite(gm: fx.GraphModule, call: Call, made: FakeTensor, memories: "_Memories") -> None:
    """Replace this call by the functional call; later readers of the changed tensor read the new one."""
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
    memories.replaced(node, new, made)
    erase((node,))
    _describe_views(new, target)


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
        _describe_views(user, old)
