"""Graphs that can be written to a file and read again, whoever captured them."""

from torch import fx


class RereadingTracer(fx.Tracer):
    """Traces the code of a graph module that is read from a file; parameters and buffers stay what they are."""

    proxy_buffer_attributes = True  # else what is computed from buffers alone would be computed once, and kept


def picklable(gm: fx.GraphModule) -> fx.GraphModule:
    """Return `gm` itself, which can now be pickled and read back, and so can its copies.

    To read a graph module back, torch.fx runs its code through a tracer of the class that captured it, made without
    arguments. Some tracers need arguments, and that of `make_fx` computes on parameters instead of noting what is
    computed. Stack traces survive; other metadata does not, so run `propagate_shapes` again. Nor do annotations that
    are text, as all are in files that begin with `from __future__ import annotations`.
    """
    quoted = [node for node in gm.graph.nodes if isinstance(node.type, str)]
    for node in quoted:
        node.type = None  # torch.fx would look for an object of this name
    if quoted:
        gm.recompile()
    gm._tracer_cls = RereadingTracer
    gm.graph._tracer_cls = RereadingTracer  # copies take the class from here
    return gm
