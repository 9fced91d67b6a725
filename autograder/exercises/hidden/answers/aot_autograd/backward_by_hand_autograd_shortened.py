import torch
from torch._functorch.compile_utils import fx_graph_cse
from torch.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten
made = {}


def derivative(grad, x, bias, residual, kept, weight):
    leaves = [t.detach().requires_grad_() for t in (x, bias, residual, weight, torch.zeros_like(weight))]
    h = (leaves[0] + leaves[1]) * kept + leaves[2]
    c = h - h.mean(-1, keepdim=True)
    y = c * (c * c).mean(-1, keepdim=True).add(1e-5).rsqrt() * leaves[3] + leaves[4]
    return torch.autograd.grad(y, leaves, grad)


def shortened(gm):
    graph = gm.graph
    for n in list(graph.nodes):
        if n.target in (aten.detach.default, aten.alias.default):
            n.replace_all_uses_with(n.args[0])
        if n.target is aten.expand.default:  # arithmetic broadcasts
            n.replace_all_uses_with(n.args[0])
        if n.target is aten.view.default and n.args[0].target is aten.sum.dim_IntList:
            n.args[0].args = n.args[0].args[:2]  # a sum that keeps no dimension needs no view
            n.replace_all_uses_with(n.args[0])
    graph.eliminate_dead_code()
    for _ in range(3):
        graph = fx_graph_cse(graph)
        graph.eliminate_dead_code()
    return torch.fx.GraphModule(gm, graph)


def backward(grad, x, bias, residual, kept, weight):
    key = (tuple(x.shape), x.dtype)
    if key not in made:  # the call before the recording
        made[key] = shortened(make_fx(derivative)(grad, x, bias, residual, kept, weight))
    return made[key](grad, x, bias, residual, kept, weight)
