"""Ranges nest, end when something raises, and ask nothing of CUDA where there is none."""

import asyncio

import pytest
import torch

from course_lib.errors import ProfilingError
from course_lib.profiling import annotate, profile_operators
from tests import skips


@pytest.fixture
def nvtx(monkeypatch):
    """Pretend that CUDA is in use, and write down what is asked of NVTX."""
    log: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", lambda name: log.append(f"push {name}"))
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: log.append("pop"))
    return log


def test_ranges_nest(nvtx):
    with annotate("outer"), annotate("inner"):
        nvtx.append("work")

    assert nvtx == ["push outer", "push inner", "work", "pop", "pop"]


def test_a_range_ends_when_something_raises_and_the_error_comes_through(nvtx):
    with pytest.raises(ZeroDivisionError), annotate("outer"), annotate("inner"):
        _ = 1 // 0

    assert nvtx == ["push outer", "push inner", "pop", "pop"]


def test_a_decorated_function_is_a_range_at_every_call(nvtx):
    @annotate("step")
    def step(x: int) -> int:
        return x + 1

    assert [step(1), step(2)] == [2, 3]
    assert nvtx == ["push step", "pop"] * 2


def test_cuda_that_comes_into_use_inside_does_not_end_a_range_that_never_began(nvtx, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    with annotate("outer"):
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        with annotate("inner"):
            pass

    assert nvtx == ["push inner", "pop"]


@pytest.mark.skipif(torch.cuda.is_available(), reason=skips.NO_GPU)
def test_without_cuda_nothing_is_asked_of_nvtx():
    if torch.version.cuda is None:  # a build with CUDA has the functions, which then do nothing
        with pytest.raises(RuntimeError):
            torch.cuda.nvtx.range_push("what annotate must not do here")
    with annotate("range"):
        pass


def test_ranges_show_in_a_profile_inside_each_other():
    def program(x):
        with annotate("outer"):
            with annotate("inner"):
                x = x.exp()
            return x + 1

    uses = {use.name: use for use in profile_operators(program, torch.zeros(64)).operators}

    assert uses["outer"].is_range
    assert uses["inner"].is_range
    assert not uses["aten::exp"].is_range
    assert uses["outer"].total_cpu_us >= uses["inner"].total_cpu_us >= uses["aten::exp"].total_cpu_us


def test_a_range_in_a_coroutine_ends_with_it(nvtx):
    async def step():
        with annotate("step"):
            await asyncio.sleep(0)

    asyncio.run(step())
    assert nvtx == ["push step", "pop"]


@pytest.mark.parametrize("name", [None, "", 3])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(ProfilingError, match="it expects a name"), annotate(name):
        pass
