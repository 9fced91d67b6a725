import torch
from torch._decomp import get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx


def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    h = x + bias
    return 0.5 * h * (1 + torch.tanh(0.79788456 * (h + 0.044715 * h * h * h)))


def derivative(grad, h):
    h = h.detach().requires_grad_()
    return torch.autograd.grad(0.5 * h * (1 + torch.tanh(0.79788456 * (h + 0.044715 * h * h * h))), h, grad)[0]


def flat(gm):
    for n in list(gm.graph.nodes):
        if n.target is torch.ops.aten.detach.default:
            n.replace_all_uses_with(n.args[0])
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm


example = torch.randn(3, 4), torch.randn(3, 4)
table = get_decompositions([torch.ops.aten.tanh_backward])
table[torch.ops.aten.rsub.Scalar] = lambda x, number, alpha=1: torch.add(torch.neg(x), number)
made = flat(make_fx(derivative, decomposition_table=table)(*example))
derived = torch.jit.trace(lambda grad, h: torch.fx.Interpreter(made).run(grad, h), example, check_trace=False)


@torch.jit.script
def bias_gelu_backward(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    by_x = derived(grad, x + bias)
    return by_x, by_x.sum_to_size(bias.shape)
