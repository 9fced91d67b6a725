"""Hidden checks and controls of exercise 09.2."""

from __future__ import annotations

from autograder.exercises.inductor import reach_byte_minimum as visible
from autograder.host.exercise import Check, Control, HiddenPart

OTHERS = {
    "soften": ((3, 65, 129),),
    "mix": ((400, 200, 61),),
    "shares": ((513, 31),),
    "scores": ((300, 1024),),
}

REFERENCE = '''
def lean():
    """The four functions, each as one graph that moves hardly more than its inputs and outputs."""

    def soften(x, temperature):
        h = x * torch.sigmoid(x)
        return torch.tanh(h / temperature.clamp(min=0.1))

    def mix(a, b, weight):
        left = a.shape[1]
        return a @ weight[:left] + b @ weight[left:]

    def shares(x):
        columns = x.sum(0)
        return columns / columns.sum()

    def scores(q, k):
        return (q @ k.t()) * q.shape[1] ** -0.5

    return {"soften": soften, "mix": mix, "shares": shares, "scores": scores}
'''
WASTEFUL = '''
def lean():
    """The functions as they were."""

    def soften(x, temperature):
        h = x * torch.sigmoid(x)
        if temperature < 0.1:
            temperature = torch.full_like(temperature, 0.1)
        return torch.tanh(h / temperature)

    def mix(a, b, weight):
        return torch.cat([a, b], dim=1) @ weight

    def shares(x):
        return (x / x.sum()).sum(0)

    def scores(q, k):
        scaled = q.float() * q.shape[1] ** -0.5
        return (scaled @ k.float().t()).to(q.dtype)

    return {"soften": soften, "mix": mix, "shares": shares, "scores": scores}
'''
HIDDEN = HiddenPart(
    checks=tuple(
        Check(f"`{name}` in other shapes", "other shapes", 1.4, visible.at(name, *sizes))
        for name, sizes in OTHERS.items()
    ),
    controls=(
        Control("reference", REFERENCE, 14),
        Control("as they were", WASTEFUL, 0),
    ),
    right_here={
        "one precision lower": "the control leaves float16 as it is, so `scores` stays right; the others get nothing"
    },
)
