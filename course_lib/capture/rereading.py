"""Make graph modules picklable, whatever tracer captured them."""

from torch import fx


class RereadingTracer(fx.Tracer):
    """Trace the code of a graph module that is unpickled; parameters and buffers stay attributes."""

    proxy_buffer_attributes = True  # otherwise values computed from buffers alone would become constants


def picklable(gm: fx.GraphModule) -> fx.GraphModule:
    """Make `gm` and its copies picklable, and return `gm`.

    To unpickle a graph module, torch.fx traces its code with the class of the tracer that captured it, called without
    arguments. Some tracers need arguments, and the tracer of `make_fx` computes on parameters instead of recording.
    Stack traces survive; other metadata does not, so run `propagate_shapes` again. Annotations that are strings are
    lost too, as in files with `from __future__ import annotations`.
    """
    quoted = [node for node in gm.graph.nodes if isinstance(node.type, str)]
    for node in quoted:
        node.type = None  # torch.fx would look for an object of this name
    if quoted:
        gm.recompile()
    gm._tracer_cls = RereadingTracer
    gm.graph._tracer_cls = RereadingTracer  # copies take the class from here
    return gm
