"""Capture below autograd: run the program once on the inputs and record what the dispatcher is asked for (`make_fx`).

Private: `make_fx` lives in `torch.fx.experimental` and may move.
"""

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from course_lib.capture.captured import Captured
from course_lib.capture.explaining import explain_failure, name_of
from course_lib.capture.source import lines_of_nodes


def capture_make_fx(model: nn.Module | Callable[..., Any], inputs: tuple[Any, ...]) -> Captured:
    """Record ATen operators with the sizes of these inputs as constants; parameters become attributes of the graph."""
    try:
        graph_module = make_fx(model, record_stack_traces=True)(*inputs)
    except Exception as error:  # the program runs, so it can fail in any way
        raise explain_failure("make_fx", name_of(model), error) from error
    return Captured(
        mode="make_fx",
        captured_by="torch.fx.experimental.proxy_tensor.make_fx",
        code=graph_module.code,
        ir=str(graph_module.graph),
        run=graph_module,
        graphs={"graph": graph_module},
        module=graph_module,
        lines=lines_of_nodes([graph_module]),
    )
