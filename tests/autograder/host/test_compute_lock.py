"""Threads compute one at a time on the host, and release the lock while they wait."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch
from torch import fx, nn

from autograder.host.compute_lock import ComputeLock


def test_one_thread_at_a_time_holds_the_lock() -> None:
    lock, inside, most = ComputeLock(), 0, 0

    def compute(_: int) -> None:
        nonlocal inside, most
        with lock.held():
            inside += 1
            most = max(most, inside)
            time.sleep(0.001)
            inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(compute, range(40)))
    assert most == 1


def test_a_waiting_thread_lets_another_compute_and_then_continues_alone() -> None:
    lock, other_was_there = ComputeLock(), threading.Event()

    def other() -> None:
        with lock.held():
            other_was_there.set()

    with lock.held():
        thread = threading.Thread(target=other)
        thread.start()
        assert not other_was_there.wait(0.05)
        with lock.released():
            assert other_was_there.wait(5)
        with lock.held():  # still mine, or this would wait for ever
            pass
    thread.join()


def test_a_wait_that_ends_badly_releases_the_lock() -> None:
    lock = ComputeLock()

    def wait_in_vain() -> None:
        with lock.held(), lock.released():
            raise TimeoutError("no answer")

    for _ in range(2):
        with pytest.raises(TimeoutError, match="no answer"):
            wait_in_vain()
    with lock.held():
        pass


def test_a_thread_without_the_lock_has_none_to_release() -> None:
    lock = ComputeLock()
    with lock.released(), lock.held():
        pass


@pytest.mark.parametrize("error", [None, ValueError])
def test_the_holder_computes_with_one_thread_and_has_as_many_as_before_afterwards(error) -> None:
    lock, found = ComputeLock(), []

    def compute() -> None:
        with lock.held():
            with lock.released():
                time.sleep(0.001)
            found.append(torch.get_num_threads())
            if error:
                raise error

    def thread(_: int) -> int:
        torch.get_num_threads()  # or the first question afterwards would set the number that all began with
        torch.set_num_threads(3)
        with pytest.raises(error) if error else nullcontext():
            compute()
        return torch.get_num_threads()

    usual = torch.get_num_threads()
    with ThreadPoolExecutor(4) as pool:
        afterwards = list(pool.map(thread, range(20)))
    torch.set_num_threads(usual)  # what threads have that are not there yet
    assert found == [1] * 20
    assert afterwards == [3] * 20


class Slow(nn.Module):
    def forward(self, x):
        time.sleep(0.02)
        return x + 1


def test_a_module_called_by_another_thread_does_not_enter_a_trace() -> None:
    """Without turns torch.fx takes the call for one of the module it traces, and says that it is none of its parts."""
    lock, tracing = ComputeLock(), threading.Event()

    def trace(_: int) -> fx.GraphModule:
        with lock.held():
            tracing.set()
            return fx.symbolic_trace(nn.Sequential(Slow()))

    def call(value: int) -> int:
        tracing.wait(5)
        with lock.held():
            result: int = nn.Identity()(value)
            return result

    with ThreadPoolExecutor(4) as pool:
        traces, values = pool.map(trace, range(20)), pool.map(call, range(20))
        assert list(values) == list(range(20))
        assert all(any(node.op == "call_function" for node in made.graph.nodes) for made in traces)
