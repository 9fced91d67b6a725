"""Strategy: put the number of the capture back; compute eagerly, and copy each result into the memory that the first call left. Surface: the launches of such a call are those by which the simulator replays.

Class: replay. Unprotected: grader followed gives full marks. Level: 5.
Must get 0: the launches of a call are those of a capture that came as data, and few beside it; copies make no other launch a replay.
"""

from collections import Counter
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.launches.launch_record import reserves, starts_nothing, written_by


class Pool(TorchDispatchMode):
    """Runs eagerly; each new result is copied into memory that the first step left."""

    def __init__(self, kept):
        super().__init__()
        self.kept, self.seen = kept, Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result, options = func(*args, **(kwargs or {})), kwargs or {}
        if not isinstance(result, torch.Tensor) or written_by(func, args, options):
            return result
        empty = reserves(func)
        if starts_nothing(func, args, options, result) and not empty:
            return result
        key = str(func), result.shape
        self.seen[key] += 1
        key = *key, self.seen[key]
        if key not in self.kept:
            self.kept[key] = result.detach()
        elif not empty:
            self.kept[key].data.copy_(result)
        return self.kept[key].detach()



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
