def streaming():
    def step(scores, values, m, d, acc):
        for k in range(scores.shape[1]):
            s, v = scores[:, k : k + 1], values[k : k + 1]
            new = torch.maximum(m, s)
            safe = torch.where(new == -float("inf"), torch.zeros_like(new), new)
            old, now = torch.exp(m - safe), torch.exp(s - safe)
            m, d, acc = new, d * old + now, acc * old + now * v
        return m, d, acc

    def first(scores, values):
        m = torch.full_like(scores[:, :1], -float("inf"))
        return step(scores, values, m, torch.zeros_like(m), torch.zeros_like(m) * values[:1])

    return {"first": first, "step": step, "finish": lambda m, d, acc: acc / d}
