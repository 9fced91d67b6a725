import torch._refs
from torch.jit._decompositions import var_decomposition


def var_mean(x, dim, unbiased, keepdim):
    return var_decomposition(x, [*dim], 0, keepdim), x.mean([*dim], keepdim)


torch.var_mean = var_mean


def decomposed():
    return {
        "layer_norm": lambda x, weight, bias: torch._refs.native_layer_norm(x, x.shape[-1:], weight, bias, 1e-5)[0],
        "gelu": torch._refs.nn.functional.gelu,
    }
