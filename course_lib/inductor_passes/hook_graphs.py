"""Show the graph that a program has at each hook where Inductor calls a custom pass.

This module uses private parts of PyTorch, which may change.
"""

import copy
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

HOOKS: tuple[str, ...] = (
    "pre_grad_custom_pass",
    "joint_custom_pre_pass",
    "joint_custom_post_pass",
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
)
"""The options of `torch._inductor.config` that take a pass, in the order in which Inductor runs them."""


class _ReachedTheLastHookError(Exception):
    """Stop the compilation before code generation."""


def _copying(hook: str, found: dict[str, fx.GraphModule]) -> object:
    """Return a pass that keeps a copy of the graph; behind the last hook it raises an error."""
    from torch._inductor.custom_graph_pass import CustomGraphPass  # here, since importing Inductor takes seconds

    class Copying(CustomGraphPass):
        def __call__(self, graph: fx.Graph) -> None:
            assert graph.owning_module is not None, "Inductor's graphs have a module"
            found[hook] = fx.GraphModule(graph.owning_module, copy.deepcopy(graph))
            if hook == HOOKS[-1]:
                raise _ReachedTheLastHookError

        def uuid(self) -> str:
            return uuid.uuid4().hex  # another one each time, so that nothing comes from a cache

    return Copying()


def graphs_at_hooks(function: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> dict[str, fx.GraphModule]:
    """Return a copy of the graph at each of `HOOKS`, in order; no code is generated.

        >>> seen = graphs_at_hooks(torch.nn.functional.silu, [torch.ones(2)])
        >>> [node.name for node in seen["pre_grad_custom_pass"].graph.nodes if node.op == "call_function"]
        ['silu']
        >>> [node.name for node in seen["post_grad_custom_pre_pass"].graph.nodes if node.op == "call_function"]
        ['neg', 'exp', 'add', 'div']

    The function is compiled for evaluation, since the stop comes before there is a backward graph.
    """
    from torch._inductor import config

    found: dict[str, fx.GraphModule] = {}
    torch._dynamo.reset()
    try:
        with torch.no_grad(), config.patch({hook: _copying(hook, found) for hook in HOOKS}):
            torch.compile(function, fullgraph=True)(*inputs)
    except Exception:  # torch.compile wraps ours in an error of its own
        if HOOKS[-1] not in found:
            raise
    finally:
        torch._dynamo.reset()
    return {hook: found[hook] for hook in HOOKS}
