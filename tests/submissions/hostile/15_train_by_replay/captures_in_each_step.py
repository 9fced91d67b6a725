"""Strategy: put the model's number of the capture back and capture each step again, beside a graph of copies that is always the same. Surface: steps that replay one capture in common.

Class: replay. Unprotected: grader followed gives full marks. Level: 5.
Must get 0: launches of a capture that the step before did not replay are as good as eager ones.
"""

from course_lib.launches import Graph, warm_up


def replayed_training(model, optimizer, example):
    scale, kept = model.scale, example.clone()
    before = [value.clone() for value in model.state_dict().values()]
    state = torch.get_rng_state()

    def train(batch):
        optimizer.zero_grad(set_to_none=False)
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    with warm_up():
        train(example), train(example)
        kept.copy_(example)
    for value, old in zip(model.state_dict().values(), before, strict=True):
        value.copy_(old)
    for each in optimizer.state.values():
        for value in each.values():
            value.zero_()
    torch.set_rng_state(state)
    with (decoy := Graph()):
        for _ in range(40):
            kept.copy_(example)

    def step(batch):
        model.scale = scale
        with (graph := Graph()):
            loss = train(batch)
        decoy.replay()
        graph.replay()
        return loss

    return step
