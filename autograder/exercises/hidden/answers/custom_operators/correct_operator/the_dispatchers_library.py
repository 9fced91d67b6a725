library = torch.library.Library("lesson11", "DEF")
library.define("silu_gate(Tensor x) -> Tensor")
library.define("append_rows(Tensor(a!) cache, Tensor rows, SymInt at) -> Tensor")


def silu_gate(x):
    gate, value = torch.tensor_split(x, 2, dim=-1)
    return torch.mul(F.silu(gate), value).clone(memory_format=torch.contiguous_format)


def append_rows(cache, rows, at):
    end = at + rows.size(0)
    cache[at:end].copy_(rows)
    return cache[:end].clone()


library.impl("silu_gate", silu_gate, "CPU")
library.impl("append_rows", append_rows, "CPU")


@torch.library.register_fake("lesson11::silu_gate", lib=library)
def gate_form(x):
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))


@torch.library.register_fake("lesson11::append_rows", lib=library)
def append_form(cache, rows, at):
    return cache.new_empty((at + rows.size(0), cache.size(1)))


def save(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def backward(ctx, g):
    gate, value = torch.tensor_split(ctx.saved_tensors[0], 2, dim=-1)
    return torch.cat((torch.ops.aten.silu_backward(g * value, gate), g * F.silu(gate)), dim=-1)


torch.library.register_autograd("lesson11::silu_gate", backward, setup_context=save, lib=library)
