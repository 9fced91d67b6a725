def silu_gate(x: torch.Tensor) -> torch.Tensor:
    gate, value = x.chunk(2, -1)
    return (F.silu(gate) * value).contiguous()


def append_rows(cache: torch.Tensor, rows: torch.Tensor, at: int) -> torch.Tensor:
    cache[at : at + rows.shape[0]] = rows
    return cache[: at + rows.shape[0]].clone()
