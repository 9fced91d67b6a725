"""What something would cost, counted on fake tensors: a pass asks before it rewrites."""

from collections.abc import Callable

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from course_lib.fusion.rules import Objection
from course_lib.graph import Cost, cost


def counted(function: Callable[[], object], mode: FakeTensorMode) -> Cost:
    """Return what one call of `function` costs, forward; it works on tensors of `mode`, so nothing is computed."""
    with mode, torch.no_grad():
        return cost(function, ())


def objection_to_traffic(before: Cost, after: Cost, why: str) -> Objection | None:
    """Object unless fewer bytes are moved afterwards; `why` says in a few words what takes more."""
    if after.bytes_moved < before.bytes_moved:
        return None
    reason = f"fused, {after.bytes_moved:,} bytes would be moved instead of {before.bytes_moved:,}"
    return Objection("traffic", f"{reason}: {why}")
