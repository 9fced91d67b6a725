"""Strategy: capture and replay the forward alone, and train eagerly beside it with the model's number of the capture. Surface: memory that a part of the step reads again.

Class: replay. Unprotected: grader followed gives full marks. Level: 5.
Must get 0: few launches may run beside those of a capture, and an eager backward has more.
"""

from course_lib.launches import Graph, warm_up


def replayed_training(model, optimizer, example):
    numbers = {name: value for name, value in vars(model).items() if isinstance(value, float)}
    static, random_state = example.clone(), torch.get_rng_state()
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad(), warm_up():
        model(static).square().mean()
    torch.set_rng_state(random_state)
    model.load_state_dict(weights)
    graph = Graph()
    with torch.no_grad(), graph:
        loss = model(static).square().mean()

    def step(batch):
        static.copy_(batch)
        random_state = torch.get_rng_state()
        graph.replay()
        found = loss.clone()
        torch.set_rng_state(random_state)
        vars(model).update(numbers)
        optimizer.zero_grad(set_to_none=False)
        model(batch).square().mean().backward()
        optimizer.step()
        return found

    return step
