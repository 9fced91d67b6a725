library = torch.library.Library("lesson11", "FRAGMENT")
library.define("silu_gate(Tensor x) -> Tensor")


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.lesson11.silu_gate(x)

    @staticmethod
    def backward(ctx, g):
        gate, value = ctx.saved_tensors[0].chunk(2, -1)
        s = torch.sigmoid(gate)
        return torch.cat([g * value * (s + gate * s - gate * s * s), g * gate * s], -1)


def silu_gate(x):
    gate, value = x.chunk(2, -1)
    return (F.silu(gate) * value).contiguous()


library.impl("silu_gate", Gate.apply, "Autograd")
library.impl("silu_gate", silu_gate, "CPU")
library.impl("silu_gate", lambda x: x.new_empty(*x.shape[:-1], x.shape[-1] // 2), "Meta")


def append_rows(cache: torch.Tensor, rows: torch.Tensor, at: int) -> torch.Tensor:
    cache[at : at + rows.shape[0]] = rows
    return cache[: at + rows.shape[0]] + 0


operator = custom_op("lesson11::append_rows", append_rows, mutates_args=("cache",))
operator.register_fake(lambda cache, rows, at: cache.new_empty(rows.shape[0] + at, rows.shape[1]))
