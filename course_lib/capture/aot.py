"""Capture with AOTAutograd: forward and backward in one joint graph, before anything runs.

Private: `torch._functorch` may move.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from course_lib.capture.captured import Captured
from course_lib.capture.failure_causes import explaining
from course_lib.capture.source_lines import lines_of_nodes


def capture_aot(
    model: nn.Module | Callable[..., Any], inputs: tuple[Any, ...], keyword_inputs: Mapping[str, Any]
) -> Captured:
    """Trace forward and backward together, then split them as `torch.compile` would.

    If nothing requires a gradient, there is only the graph "forward". Parameters come first among a graph's inputs.
    """
    from torch._functorch.aot_autograd import aot_function
    from torch._functorch.aot_autograd import make_boxed_func as boxed

    graphs: dict[str, fx.GraphModule] = {}

    def forward_only(gm: fx.GraphModule, example_inputs: Sequence[object]) -> Any:
        graphs.setdefault("forward", gm)
        return boxed(gm.forward)

    def backward(gm: fx.GraphModule, example_inputs: Sequence[object]) -> Any:
        return boxed(gm.forward)

    layout: list[TreeSpec] = []
    compiled = aot_function(_flat(model, layout), forward_only, backward, partition_fn=_keeping_partition(graphs))

    def run(*given: Any, **named: Any) -> Any:
        return tree_unflatten(list(compiled(_state(model), given, named)), layout[0])

    with explaining("aot", model):
        run(*inputs, **keyword_inputs)
    return Captured(
        mode="aot",
        captured_by="torch._functorch.aot_autograd",
        code="\n".join(f"# {name}\n{graph.code}" for name, graph in graphs.items()),
        ir="\n".join(f"# {name}\n{graph.graph}" for name, graph in graphs.items()),
        run=run,
        graphs=graphs,
        module=model if isinstance(model, nn.Module) else None,
        lines=lines_of_nodes(graphs.values()),
    )


def _keeping_partition(graphs: dict[str, fx.GraphModule]) -> Callable[..., tuple[fx.GraphModule, fx.GraphModule]]:
    """Return the partition function that compilers use by default, extended to record the three graphs."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    def partition(joint: fx.GraphModule, inputs: Sequence[object], **options: Any) -> Any:
        whole = fx.GraphModule(joint, fx.Graph(), "joint")
        whole.graph.output(whole.graph.graph_copy(joint.graph, {}))
        whole.recompile()
        forward, backward = min_cut_rematerialization_partition(joint, inputs, **options)
        graphs.update(joint=whole, forward=forward, backward=backward)
        return forward, backward

    return partition


def _flat(model: nn.Module | Callable[..., Any], layout: list[TreeSpec]) -> Callable[..., list[Any]]:
    """Return the program as a function of its state and inputs that returns a flat list and records its layout.

    AOTAutograd itself would return a list where the program returns a tuple.
    """

    def program(state: dict[str, torch.Tensor], inputs: tuple[Any, ...], keyword_inputs: dict[str, Any]) -> list[Any]:
        call = torch.func.functional_call
        if isinstance(model, nn.Module):
            results = call(model, state, inputs, keyword_inputs)
        else:
            results = model(*inputs, **keyword_inputs)
        flat, spec = tree_flatten(results)
        layout[:] = [spec]
        return flat

    return program


def _state(model: object) -> dict[str, torch.Tensor]:
    if not isinstance(model, nn.Module):
        return {}
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
