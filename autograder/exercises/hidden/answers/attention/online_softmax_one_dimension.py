def streaming():
    def shift(m):
        return torch.where(torch.isinf(m), torch.zeros_like(m), m)

    def first(scores, values):
        m = torch.max(scores, dim=-1).values
        e = torch.exp(scores - shift(m).unsqueeze(-1))
        return m, e.sum(-1), torch.mm(e, values)

    def step(scores, values, m_old, l_old, o_old):
        m_block, l_block, o_block = first(scores, values)
        m = torch.maximum(m_old, m_block)
        a, b = torch.exp(m_old - shift(m)), torch.exp(m_block - shift(m))
        return m, l_old * a + l_block * b, o_old * a.unsqueeze(-1) + o_block * b.unsqueeze(-1)

    def finish(m, total, o):
        return o / total.unsqueeze(-1)

    return {"first": first, "step": step, "finish": finish}
