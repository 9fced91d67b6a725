"""Capture below autograd: run the program once on the inputs and record what the dispatcher is asked for (`make_fx`).

Private: `make_fx` lives in `torch.fx.experimental` and may move.
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from course_lib.capture.captured import Captured
from course_lib.capture.explaining import explain_failure, name_of
from course_lib.capture.source import lines_of_nodes


def capture_make_fx(
    model: nn.Module | Callable[..., Any], inputs: tuple[Any, ...], keyword_inputs: Mapping[str, Any]
) -> Captured:
    """Record ATen operators with the sizes of these inputs as constants; parameters become attributes of the graph.

    The graph takes keyword inputs too by place, in the order in which they were given.
    """
    names, count = tuple(keyword_inputs), len(inputs)

    def by_place(*given: Any) -> Any:
        return model(*given[:count], **dict(zip(names, given[count:], strict=True)))

    def run(*given: Any, **named: Any) -> Any:
        if set(named) != set(names):
            raise TypeError(f"recorded with inputs named {', '.join(names)}, called with {', '.join(named) or 'none'}")
        return graph_module(*given, *(named[name] for name in names))

    try:
        program = by_place if names else model
        graph_module = make_fx(program, record_stack_traces=True)(*inputs, *keyword_inputs.values())
    except Exception as error:  # the program runs, so it can fail in any way
        raise explain_failure("make_fx", name_of(model), error) from error
    return Captured(
        mode="make_fx",
        captured_by="torch.fx.experimental.proxy_tensor.make_fx",
        code=graph_module.code,
        ir=str(graph_module.graph),
        run=run if names else graph_module,
        graphs={"graph": graph_module},
        module=graph_module,
        lines=lines_of_nodes([graph_module]),
    )
