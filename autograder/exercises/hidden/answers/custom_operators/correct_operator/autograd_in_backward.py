def formula(x):
    gate, value = x.chunk(2, dim=-1)
    return gate * torch.sigmoid(gate) * value


@custom_op("lesson11::silu_gate", mutates_args=())
def silu_gate(x: torch.Tensor) -> torch.Tensor:
    return formula(x).clone(memory_format=torch.contiguous_format)


@silu_gate.register_fake
def _(x):
    return x.new_empty(*x.shape[:-1], x.shape[-1] // 2)


def save(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def backward(ctx, g):
    with torch.enable_grad():
        x = ctx.saved_tensors[0].detach().requires_grad_()
        return torch.autograd.grad(formula(x), x, g)[0]


silu_gate.register_autograd(backward, setup_context=save)


@custom_op("lesson11::append_rows", mutates_args=["cache"])
def append_rows(cache: torch.Tensor, rows: torch.Tensor, at: int) -> torch.Tensor:
    places = torch.arange(at, at + rows.shape[0])
    cache.index_copy_(0, places, rows)
    return torch.cat((cache[:at], rows))


@append_rows.register_fake
def _(cache, rows, at):
    return torch.cat((cache[:at], rows))
