"""Hidden checks and controls of exercise 07.3."""

from __future__ import annotations

import torch

from autograder.exercises.dynamo import tame_recompiles as visible
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.captured import captures

at_lengths, plans, REFERENCES = visible.at_lengths, visible.plans, visible.REFERENCES

REFERENCE = '''
def tamed():
    """One graph for all lengths."""

    def pair_means(x):
        x = F.pad(x, (0, 0, 0, x.shape[0] % 2))
        return x.reshape(-1, 2, 4).mean(1)

    def decayed_sum(x):
        weights = 0.5 ** torch.arange(x.shape[0], dtype=x.dtype)
        return (weights[:, None] * x).sum(0)

    def faded(x, step):
        return x * 0.9**step

    def plan(question):
        calls, looped = question["calls"], question["looped"]
        places = [[i, d] for i, shape in enumerate(calls[0]) for d in range(len(shape))]
        varied = [[i, d] for i, d in places if len({call[i][d] for call in calls}) > 1]
        fixed = [p for p in varied if p in looped]
        kinds = {tuple(call[i][d] for i, d in fixed) for call in calls}
        return {"open": [p for p in varied if p not in looped], "graphs": len(kinds)}

    return {"pair_means": pair_means, "decayed_sum": decayed_sum, "faded": faded, "plan": plan}
'''
BROKEN = '''
def tamed():
    """The programs as they were."""

    def pair_means(x):
        if x.shape[0] % 2:
            x = F.pad(x, (0, 0, 0, 1))
        return x.reshape(-1, 2, 4).mean(1)

    def decayed_sum(x):
        total = torch.zeros(4, dtype=x.dtype)
        for i in range(x.shape[0]):
            total = total + 0.5**i * x[i]
        return total

    def faded(x, step):
        return x * 0.9 ** int(step)

    def plan(question):
        first = question["calls"][0]
        return {"open": [[i, d] for i, shape in enumerate(first) for d in range(len(shape))], "graphs": 1}

    return {"pair_means": pair_means, "decayed_sum": decayed_sum, "faded": faded, "plan": plan}
'''

HIDDEN = HiddenPart(
    checks=(
        Check(
            "other lengths, even and odd",
            "other lengths",
            1.5,
            captures(*(at_lengths(name, (3, 8, 64, 127, 129)) for name in REFERENCES)),
        ),
        Check(
            "double precision, with gradients",
            "gradients",
            0.9,
            captures(
                *(at_lengths(name, (6, 9), dtype=torch.float64) for name in ("pair_means", "decayed_sum")),
                gradients=True,
            ),
        ),
        Check("long sweeps: what stays open", "what to open", 0.8, plans("open", (15, 20, 25, 2, 3, 2, 3, 4, 30))),
        Check("long sweeps: how many graphs", "how many graphs", 0.8, plans("graphs", (15, 20, 25, 2, 3, 2, 3, 4, 30))),
    ),
    controls=(
        Control("reference", REFERENCE, 10),
        Control("as they were", BROKEN, 0),
    ),
    right_here={},
)
