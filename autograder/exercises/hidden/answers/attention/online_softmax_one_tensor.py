def streaming():
    def unpacked(state):
        return state[:, :1], state[:, 1:2], state[:, 2:]

    def first(scores, values):
        zeros = torch.zeros(scores.shape[0], values.shape[1] + 2, dtype=scores.dtype)
        zeros[:, 0] = -torch.inf
        return (step(scores, values, zeros),)

    def step(scores, values, state):
        old, total, mixed = unpacked(state)
        new = torch.maximum(old, scores.max(dim=1, keepdim=True)[0])
        base = torch.nan_to_num(new, neginf=0.0)
        p = torch.exp(scores - base)
        a = torch.exp(old - base)
        return torch.cat([new, a * total + p.sum(1, True), a * mixed + p.matmul(values)], dim=1)

    def finish(state):
        _, total, mixed = unpacked(state)
        return mixed / total

    return {"first": first, "step": step, "finish": finish}
