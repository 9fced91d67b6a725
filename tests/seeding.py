"""Print the seed of a run, and let what each test draws depend on it and on the test alone, not on the tests before."""

import os
import random
import shlex
import sys
from collections.abc import Generator
from typing import Any

import pytest

from tests.drawn import VARIABLE, chance, run_seed


def seed_generators(name: str) -> None:
    """Seed the generators that tests share, Python's and PyTorch's for the CPU, for a test or fixture of this name."""
    seed = chance(name).getrandbits(63)
    random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(seed)  # torch.manual_seed is slow: it prepares for GPUs


def states() -> tuple[Any, Any]:
    """Return the states of these generators."""
    torch = sys.modules.get("torch")
    return random.getstate(), torch and torch.default_generator.get_state()


def restore(python: Any, torch: Any) -> None:
    """Put the generators back into states from `states`."""
    random.setstate(python)
    if torch is not None:
        sys.modules["torch"].default_generator.set_state(torch)


def pytest_configure() -> None:
    """Draw the seed before other processes start, which find it in their environment."""
    try:
        run_seed()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_report_header() -> str:
    """Name the seed in the header."""
    return f"{VARIABLE}={run_seed()}"


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Name the seed where `-q` leaves the header out."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not reporter.showheader:
        reporter.write_line(pytest_report_header())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let each test draw the same, whatever ran before it in its process."""
    seed_generators(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, object, object]:
    """Let a fixture of several tests draw the same, whichever of them needs it first."""
    if fixturedef.scope == "function":
        return (yield)
    before = states()
    seed_generators(f"{request.node.nodeid} {fixturedef.argname} {getattr(request, 'param_index', 0)}")
    try:
        return (yield)
    finally:
        restore(*before)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say with which command a failing run, and its first failure, are repeated."""
    failed = [*terminalreporter.stats.get("failed", []), *terminalreporter.stats.get("error", [])]
    if failed:
        variables = f"{VARIABLE}={run_seed()}{' WHOLE=1' if os.environ.get('WHOLE') else ''}"
        one = f"{shlex.quote(sys.executable)} -m pytest {shlex.quote(failed[0].nodeid)}"
        terminalreporter.write_line(f"To repeat this run:     {variables} make test")
        terminalreporter.write_line(f"To repeat one failure:  {variables} {one}")
