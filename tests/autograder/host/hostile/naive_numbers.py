"""How numbers are judged where nobody asks what else a number may be: not one, or larger than all memory."""

import torch


def tallied(answer):
    """Counts how often each token occurs among those that were hidden."""
    tokens = torch.randint(0, 24, (16, 40))
    hidden, _ = answer(tokens, 7, letters=24, mask=25, padding=24)
    return len(torch.bincount(hidden.flatten())) < 30


def tolerant(answer):
    """Asks whether a number is too far from the right one, which NaN never is."""
    programs = ["eager", "fused"]
    report = answer({"programs": programs, "times": [["eager", 3.0], ["fused", 2.0]]})
    return not abs(report["ratio"] - 1.5) > 0.01
