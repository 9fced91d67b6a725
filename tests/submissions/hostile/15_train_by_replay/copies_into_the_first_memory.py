"""Strategy: put the number of the capture back; compute eagerly, and copy each result into the memory that the first call left. Surface: the launches of such a call are those by which the simulator replays.

Class: replay. Unprotected: grader followed gives full marks. Level: 5.
Must get 0: the launches of a call are those of a capture that came as data, and few beside it; copies make no other launch a replay.
"""

# The file tests/submissions/hostile/15_replay_by_shape/pool_of_the_first_call.txt of this repository stands here.


def replayed_training(model, optimizer, example):
    numbers = {name: value for name, value in vars(model).items() if isinstance(value, float)}
    kept, static = {}, example.clone()
    for each in model.parameters():
        each.grad = torch.zeros_like(each) if each.grad is None else each.grad
        group = optimizer.param_groups[0]
        if isinstance(optimizer, torch.optim.RMSprop):
            optimizer.state[each] = {"step": torch.tensor(0.0), "square_avg": torch.zeros_like(each), "momentum_buffer": torch.zeros_like(each)}
        elif group["momentum"]:
            optimizer.state[each] = {"momentum_buffer": torch.zeros_like(each)}

    def step(batch):
        vars(model).update(numbers)
        static.copy_(batch)
        with Pool(kept):
            optimizer.zero_grad(set_to_none=False)
            loss = model(static).square().mean()
            loss.backward()
            optimizer.step()
        return loss.detach().clone()

    return step
