"""The benchmark of the sandbox: its arithmetic, and one quick series of the strongest level."""

from autograder.host.sandbox import open_sandbox
from benchmarks.grading.sandbox_overhead import Series, machine, measure


def test_a_row_gives_best_median_p95_rate_and_processor_time() -> None:
    series = Series(1, "zygote", [0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0.5, 0.5], cpu_s=0.04)

    assert series.line().split() == ["1", "zygote", "4", "100", "250", "400", "120", "10"]


def test_the_machine_is_named_with_its_load() -> None:
    assert "cores" in machine()
    assert "load" in machine()


def test_a_forked_worker_answers_sooner_than_a_cold_one() -> None:
    sandbox = open_sandbox()
    assert sandbox.zygotes is not None, sandbox.notes

    cold, forked = measure(sandbox, "cold", 1), measure(sandbox, "zygote", 4)

    assert min(forked.first_call_s) < min(cold.first_call_s) / 2
