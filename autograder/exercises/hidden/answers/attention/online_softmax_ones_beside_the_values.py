def streaming():
    def first(scores, values):
        rows = scores.shape[0]
        state = torch.zeros(rows, values.shape[1] + 1, dtype=scores.dtype)
        return step(scores, values, torch.full((rows, 1), -math.inf, dtype=scores.dtype), state)

    def step(scores, values, top, state):
        ones = torch.ones(values.shape[0], 1, dtype=values.dtype)
        new = torch.cat([scores, top], 1).max(1, keepdim=True).values
        safe = torch.where(torch.isinf(new), torch.zeros_like(new), new)
        return new, state * torch.exp(top - safe) + torch.exp(scores - safe) @ torch.cat([values, ones], 1)

    def finish(top, state):
        return state[:, :-1] / state[:, -1:]

    return {"first": first, "step": step, "finish": finish}
