def streaming():
    def of_block(scores, values):
        top = scores.amax(-1, keepdim=True)
        weights = torch.exp(scores - top.clamp_min(-1e30))
        return top, weights.sum(-1, keepdim=True), weights @ values

    def merge(one, two):
        top = torch.maximum(one[0], two[0])
        factors = [torch.exp(each[0] - top.clamp_min(-1e30)) for each in (one, two)]
        total, mixed = (sum(f * each[i] for f, each in zip(factors, (one, two), strict=True)) for i in (1, 2))
        return top, total, mixed

    def step(scores, values, *state):
        return merge(state, of_block(scores, values))

    return {"first": of_block, "step": step, "finish": lambda top, total, mixed: mixed * total.reciprocal()}
