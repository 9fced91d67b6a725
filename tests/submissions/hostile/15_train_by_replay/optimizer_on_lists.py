"""Strategy: capture forward and backward only, which leave no trace in the weights, and step the optimizer eagerly, by one launch on all parameters. Surface: few launches may run beside a replay.

Class: replay. Unprotected: grader followed gives full marks. Level: 5.
Must get 0: an operator on a list is as many launches as the list has tensors.
"""

from course_lib.launches import Graph, warm_up


def replayed_training(model, optimizer, example):
    static = example.clone()

    def both():
        optimizer.zero_grad(set_to_none=False)
        loss = model(static).square().mean()
        loss.backward()
        return loss.detach()

    buffers = {name: value.clone() for name, value in model.named_buffers()}
    random_state = torch.get_rng_state()
    with warm_up():
        both(), both()
    for name, value in model.named_buffers():
        value.copy_(buffers[name])
    torch.set_rng_state(random_state)
    with (graph := Graph()):
        loss = both()
    for group in optimizer.param_groups:
        group["foreach"] = True

    def step(batch):
        static.copy_(batch)
        graph.replay()
        optimizer.step()  # eagerly, in one launch
        return loss.clone()

    return step
