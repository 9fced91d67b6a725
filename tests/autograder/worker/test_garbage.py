"""No cyclic garbage is collected while functions are traced, on a Python that might crash by it."""

import gc

import pytest

from autograder.worker import garbage
from autograder.worker.garbage import kept_while_tracing


@pytest.mark.parametrize("may_crash", [True, False])
def test_garbage_is_kept_where_it_may_crash(monkeypatch, may_crash):
    monkeypatch.setattr(garbage, "MAY_CRASH", may_crash)

    with kept_while_tracing():
        within = gc.isenabled()
        with kept_while_tracing():
            deeper = gc.isenabled()
        again = gc.isenabled()

    assert (within, deeper, again) == (not may_crash,) * 3
    assert gc.isenabled()


def test_who_collects_nothing_collects_nothing_afterwards(monkeypatch):
    monkeypatch.setattr(garbage, "MAY_CRASH", True)
    gc.disable()
    try:
        with kept_while_tracing():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_lets_garbage_be_collected_again(monkeypatch):
    monkeypatch.setattr(garbage, "MAY_CRASH", True)
    with pytest.raises(KeyError), kept_while_tracing():
        raise KeyError
    assert gc.isenabled()
