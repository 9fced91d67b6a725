def silu_gate(x: torch.Tensor) -> torch.Tensor:
    """Return silu(gate) * value, contiguous; its fake kernel, its gradient and both registrations stand below.

    Also here: append_rows(cache: torch.Tensor, rows: torch.Tensor, at: int) -> torch.Tensor; about 22 lines.
    """
    gate, value = x.chunk(2, -1)
    return (F.silu(gate) * value).contiguous()


def append_rows(cache: torch.Tensor, rows: torch.Tensor, at: int) -> torch.Tensor:
    """Write rows into the cache from row `at` on, and return a copy of the filled part."""
    end = at + rows.shape[0]
    cache[at:end] = rows
    return cache[:end].clone()


def keep_gate(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def gate_backward(ctx, g):
    gate, value = ctx.saved_tensors[0].chunk(2, -1)
    s = torch.sigmoid(gate)
    return torch.cat([g * value * s * (1 + gate * (1 - s)), g * gate * s], -1)


gate_operator = custom_op("lesson11::silu_gate", silu_gate, mutates_args=())
gate_operator.register_fake(lambda x: x.new_empty(*x.shape[:-1], x.shape[-1] // 2))
gate_operator.register_autograd(gate_backward, setup_context=keep_gate)
append_operator = custom_op("lesson11::append_rows", append_rows, mutates_args=("cache",))
append_operator.register_fake(lambda cache, rows, at: cache.new_empty(at + rows.shape[0], cache.shape[1]))
