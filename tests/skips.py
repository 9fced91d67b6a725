"""What a test may skip for: only what `make test` cannot install; any other skip fails. The last line counts them."""

import re
from collections import Counter
from collections.abc import Generator
from typing import Any, NoReturn

import pytest

from autograder.host.sandbox import SandboxError

GPU = "needs a GPU"
NO_GPU = "needs a machine without a GPU"
BROWSER = "needs a browser"
KERNEL = "needs a kernel that allows it"
ROOT = "needs root"
PLACE = "needs files that other users may read"
INTERPRETER = "needs another interpreter of Triton"
REASONS = (GPU, NO_GPU, BROWSER, KERNEL, ROOT, PLACE, INTERPRETER)

# Why a machine may lack a level of isolation; bubblewrap and libseccomp can be installed, so they are not among these.
OF_LEVELS = {
    "No control group": KERNEL,
    "does not allow new namespaces": KERNEL,
    "has no Landlock": KERNEL,
    "because they may not enter": PLACE,
}


def skip_level(error: SandboxError) -> NoReturn:
    """Skip a test whose level of isolation this machine lacks; raise the error where an attack on it succeeds."""
    if "student code could" in str(error):
        raise error
    for words, reason in OF_LEVELS.items():
        if words in str(error):
            pytest.skip(f"{reason}: {error}")
    raise error


def unexpected(report: pytest.TestReport | pytest.CollectReport) -> bool:
    """Tell whether a report is a skip for a reason that is not in `REASONS`."""
    return report.skipped and not hasattr(report, "wasxfail") and not reason_of(report).startswith(REASONS)


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the reason of a skipped report, as the test gave it."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return re.sub(r"^Skipped: ", "", text)


def refuse(report: Any) -> None:
    """Turn an unexpected skip into a failure that says what to do."""
    if unexpected(report):
        report.outcome = "failed"
        report.longrepr = (
            f"Skipped for a reason that tests may not have: {reason_of(report)}\n"
            f"`make test` installs what tests need; a reason begins with one of: {'; '.join(REASONS)}."
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a test fail that skips for a reason of its own."""
    report = yield
    refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let a file fail that skips for a reason of its own."""
    report = yield
    refuse(report)
    return report


def counted(skipped: list[pytest.TestReport]) -> list[str]:
    """Return a line for each reason in full, and a last one with the number of tests for each of `REASONS`."""
    in_full = Counter(reason_of(report) for report in skipped)
    short = Counter(next(reason for reason in REASONS if text.startswith(reason)) for text in in_full.elements())
    lines = [f"{count:5}  {text}" for text, count in sorted(in_full.items())]
    told = "; ".join(f"{reason}: {count}" for reason, count in short.most_common())
    return [*lines, f"Skipped {len(skipped)} tests: {told}." if skipped else "Skipped no test."]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Say last how many tests were skipped and why; only in the process that prints."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not session.config.option.collectonly:
        for line in counted(reporter.stats.get("skipped", [])):
            reporter.write_line(line)
