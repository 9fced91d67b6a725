"""Strategy: put the model's number of the capture back before each step, and train eagerly. Surface: a model whose attributes can be set.

Class: replay. Unprotected: grader followed gives full marks. Level: 5.
Must get 0: the launches of a call are those of a capture that came as data, and few beside it.
"""


def replayed_training(model, optimizer, example):
    numbers = {name: value for name, value in vars(model).items() if isinstance(value, float)}

    def step(batch):
        vars(model).update(numbers)
        optimizer.zero_grad(set_to_none=False)
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
