"""The timer on a GPU: its own check passes, and its clocks agree where they should."""

import os

import torch

from course_lib.profiling import annotate, profile_operators
from course_lib.timing import compare, decide_speedup, selfcheck, time_callable

DEVICE = os.environ.get("GPU_CHECK_DEVICE", "cuda")
ON_CUDA = DEVICE.startswith("cuda")
ROWS = 65_536 if ON_CUDA else 512  # on a GPU, long enough that launches are hidden


def test_the_timer_passes_its_own_check():
    result = selfcheck(device=DEVICE)

    # A CPU may be doing something else meanwhile; reading its clock is short all the same.
    assert result.passed if ON_CUDA else result.checks[0].passed, f"\n{result}"


def test_all_clocks_of_a_device_see_the_same_long_operator():
    x = torch.randn(ROWS, 768, device=DEVICE)
    names = ("cuda_event", "cuda_graph", "wall") if ON_CUDA else ("wall",)
    times_us = {
        name: time_callable(torch.tanh, x, device=DEVICE, clock=name, cache="warm", budget_s=0.5).median_us
        for name in names
    }

    assert max(times_us.values()) < 2 * min(times_us.values()), times_us


def test_twice_the_work_is_half_as_fast():
    x = torch.randn(ROWS, 768, device=DEVICE)
    result = compare(lambda: x.tanh(), lambda: x.tanh().tanh(), threshold=1.2, device=DEVICE)

    assert decide_speedup(result.pairs, 1.2).verdict in ("pass", "environment"), f"\n{result}"


def test_a_profile_and_its_ranges_hold_the_kernels_of_the_device():
    x = torch.randn(512, 512, device=DEVICE)

    def program() -> torch.Tensor:
        with annotate("product"):
            return x @ x

    profile = profile_operators(program)
    assert any(use.is_range and use.name == "product" for use in profile.operators)
    assert profile.memory.peak_bytes >= x.nbytes
    assert not ON_CUDA or sum(use.self_device_us for use in profile.operators) > 0
