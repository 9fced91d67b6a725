"""What the measured times of the kernels are made into: fractions, missed targets, a table. On times made up here."""

import dataclasses

import torch

from benchmarks import kernel_times


def report(device: str = "cuda", **fractions: float) -> object:
    """Return a report on one operator, forward, at 65,536 rows: programs with the fractions of copy that they reach."""
    rows = [
        kernel_times.Measured(
            "bias_gelu", 65536, 768, "bfloat16", "forward", program, 10**6, 100 / fraction, 1.0, 20, fraction
        )
        for program, fraction in fractions.items()
    ]
    return kernel_times.Report(device, 4000.0, tuple(rows), ())


def test_a_kernel_that_reaches_its_targets_is_not_reproached() -> None:
    good = report(eager=0.4, compile=0.8, kernel=0.86)
    assert kernel_times.missed_targets(good) == []
    table = kernel_times.as_markdown(good)
    assert (
        "| bias_gelu | 65536 × 768 bfloat16 | forward | 250.0 (40%) | 125.0 (80%) | – | 116.3 (86%) | 2.15 |" in table
    )
    assert "All targets met by what was measured." in table


def test_a_kernel_below_the_share_of_copy_or_slower_than_compile_is_named() -> None:
    slow = report(eager=0.4, compile=0.9, kernel=0.8)
    share, compiled = kernel_times.missed_targets(slow)
    assert share == "bias_gelu forward at 65536 × 768: 80% of copy bandwidth, of 85%"
    assert compiled == "bias_gelu forward at 65536 × 768: 125.0 µs, torch.compile 111.1 µs"
    assert f"- {share}" in kernel_times.as_markdown(slow)


def test_backward_has_a_target_of_its_own_and_few_rows_have_none() -> None:
    slow = report(kernel=0.75)
    (one,) = slow.measured
    backward = dataclasses.replace(slow, measured=(dataclasses.replace(one, direction="backward"),))
    few_rows = dataclasses.replace(slow, measured=(dataclasses.replace(one, rows=8192),))
    assert len(kernel_times.missed_targets(slow)) == 1
    assert kernel_times.missed_targets(backward) == kernel_times.missed_targets(few_rows) == []


def test_a_dry_run_has_no_targets() -> None:
    dry = report("cpu", kernel=0.01)
    assert kernel_times.missed_targets(dry) == []
    assert "A dry run" in kernel_times.as_markdown(dry)


def test_what_fails_or_has_no_time_left_is_listed_and_the_rest_measured() -> None:
    def compiler(program: object) -> object:
        def refuse(*tensors: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no compiler here")

        return refuse

    plan = dataclasses.replace(kernel_times.dry_plan(), compiler=compiler, sample_s=0.001)
    measured = kernel_times.measure_kernels(plan)
    assert {one.program for one in measured.measured} == {"eager", "kernel"}
    assert all("no compiler here" in line for line in measured.left_out)
    assert len(measured.left_out) == 9  # seven operators, two peers
    late = kernel_times.measure_kernels(dataclasses.replace(plan, budget_s=0.0))
    assert late.measured == ()
    assert len(late.left_out) == 7


def test_all_programs_of_an_operator_compute_the_same() -> None:
    for operator in kernel_times.operators(lambda program: program):
        tensors = operator.tensors(64, 128, torch.float64, "cpu")
        results = {}
        for name, program in operator.programs(lambda program: program):
            torch.manual_seed(0)
            output = program(*tensors)
            results[name] = [output, *torch.autograd.grad(output.square().sum(), tensors)]
        if "dropout" in operator.name:  # each draws its own mask
            del results["kernel"]
        for name, found in results.items():
            for ours, theirs in zip(found, results["eager"], strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6, msg=f"{operator.name} {name}")
