# %% a class
class Training:
    def __init__(self, model, optimizer, example):
        self.model, self.optimizer, self.static = model, optimizer, torch.clone(example)
        weights, random = {name: value.clone() for name, value in model.state_dict().items()}, torch.get_rng_state()
        with warm_up():
            for _ in range(2):
                self.train()
        model.load_state_dict(weights)
        with torch.no_grad():
            for values in optimizer.state.values():
                [value.fill_(0) for value in values.values() if torch.is_tensor(value)]
        torch.set_rng_state(random)
        self.graph = Graph()
        with self.graph:
            self.loss = self.train()

    def train(self):
        self.optimizer.zero_grad(set_to_none=False)
        loss = (self.model(self.static) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def __call__(self, batch):
        self.static.copy_(batch)
        self.graph.replay()
        return self.loss.detach().clone()


def replayed_training(model, optimizer, example):
    return Training(model, optimizer, example)


# %% begin and end of a capture
def replayed_training(model, optimizer, example):
    static, loss = torch.empty_like(example).copy_(example), torch.zeros(())
    tensors = [*model.parameters(), *model.buffers()]
    kept = [each.detach().clone() for each in tensors]

    def train():
        torch._foreach_zero_([each.grad for each in model.parameters()])
        found = model(static).square().mean()
        found.backward()
        optimizer.step()
        loss.copy_(found.detach())

    with torch.random.fork_rng(devices=[]), warm_up():
        train()
        train()
    for tensor, old in zip(tensors, kept, strict=True):
        tensor.data.copy_(old)
    for state in optimizer.state.values():
        for name in state:
            state[name].mul_(0)
    graph = Graph()
    graph.capture_begin()
    train()
    graph.capture_end()

    def step(batch):
        static[...] = batch
        graph.replay()
        return loss + 0

    return step


# %% state made anew before the capture
def replayed_training(model, optimizer, example):
    static = example.clone()

    def train():
        optimizer.zero_grad(set_to_none=False)
        loss = model(static).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    random = torch.get_rng_state()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with warm_up():
        first = train()
        second = train()
    del first, second
    model.load_state_dict(state)
    for parameter, old in list(optimizer.state.items()):
        optimizer.state[parameter] = {name: torch.zeros_like(value) for name, value in old.items()}
    torch.set_rng_state(random)
    graph = Graph()
    with graph:
        loss = train()

    def step(batch):
        with torch.no_grad():
            static.copy_(batch)
        graph.replay()
        return loss.detach().clone()

    return step


# %% gradients by autograd.grad
def replayed_training(model, optimizer, example):
    static, parameters = example.clone(), list(model.parameters())

    def train():
        loss = model(static).square().mean()
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad.copy_(gradient)
        optimizer.step()
        return loss.detach()

    before, random = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
    with warm_up():
        train()
        train()
    torch.set_rng_state(random)
    for k, v in model.state_dict().items():
        v.copy_(before[k])
    for values in optimizer.state.values():
        for value in values.values():
            value.zero_()
    graph = Graph()
    with graph:
        loss = train()
    losses = []

    def step(batch):
        static.copy_(batch)
        graph.replay()
        losses.append(loss.clone())
        return losses[-1]

    return step


# %% a copy keeps what was
def copied(module):
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def replayed_training(model, optimizer, example):
    original, draws = copied(model), torch.random.get_rng_state()
    batch_memory = example.clone()

    def one_step():
        optimizer.zero_grad(False)
        loss = model(batch_memory).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    with warm_up():
        for _ in range(2):
            one_step()
    model.load_state_dict(original)
    for state in optimizer.state_dict()["state"].values():
        for tensor in state.values():
            tensor.zero_()
    torch.random.set_rng_state(draws)
    graph = Graph()
    with graph:
        loss = one_step()

    def step(batch):
        batch_memory.copy_(batch)
        graph.replay()
        return torch.clone(loss)

    return step


# %% gradients cleared before the replay
def replayed_training(model, optimizer, example):
    static, state = example.clone(), torch.get_rng_state()
    kept = [value.clone() for value in model.state_dict().values()]

    def train():
        loss = model(static).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def step(batch):
        static.copy_(batch)
        optimizer.zero_grad(set_to_none=False)
        graph.replay()
        return loss.clone()

    with warm_up():
        for _ in range(2):
            optimizer.zero_grad(set_to_none=False)
            train()
    for value, old in zip(model.state_dict().values(), kept, strict=True):
        value.copy_(old)
    for values in optimizer.state.values():
        for value in values.values():
            value.zero_()
    torch.set_rng_state(state)
    with (graph := Graph()):
        loss = train()
    return step
