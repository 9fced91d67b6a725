"""The GPU check, tried out on the CPU: every section runs, fails, crashes and hangs without costing the others."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks import gpu_check as script
from benchmarks import kernel_times
from benchmarks.gpu import running
from benchmarks.gpu.running import Result, run_all
from benchmarks.gpu.section import Run, Section, sections
from benchmarks.gpu.sections import layer, machine, references, timer, worker
from benchmarks.gpu.sections import tests as gpu_tests
from benchmarks.gpu.sections.layer import build_layer, programs
from benchmarks.kernel_cases import Operator, operators
from course_lib.models import TransformerConfig
from tests import skips
from tests.architecture.source_tree import ROOT
from tests.benchmarks.forked_sections import Before, ForkingSubprocess
from tests.drawn import some

FORKING, SCRIPT = "tests.benchmarks.forked_sections", ROOT / "benchmarks" / "gpu_check.py"
SECTIONS = ("machine", "kernels", "layer", "worker", "tests", "timer", "clock", "references")
# A GPU machine may have none of these.
ABSENT = """
import sys
sys.modules.update(dict.fromkeys(["nbgrader", "jupyterlab", "transformers", "rich", "graphviz", "numpy"]))
"""
# What happens to a section's process before the section begins, how that is told, and what time the section gets.
FATES: dict[str, tuple[Callable[[], object], str, float]] = {
    "tests": (os.abort, "crashed by SIGABRT", 40.0),
    "timer": (lambda: sys.exit("out of memory"), "ended with exit status 1", 40.0),
    "kernels": (lambda: time.sleep(600), "stopped after", 1.0),
}


def gpu_check(folder: Path, only: Sequence[str]) -> tuple[int, Any, str]:
    """Run sections of the script as on a bare machine; return exit status, record and table."""
    (folder / "sitecustomize.py").write_text(ABSENT, encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "-m", FORKING, str(SCRIPT), "--dry-run", "--results", str(folder), "--only", *only],
        env={**os.environ, "PYTHONPATH": str(folder), "TRITON_INTERPRET": "0", "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode in (0, 1), answer.stderr
    assert "nothing was measured on a GPU" in answer.stdout
    record = json.loads(next(folder.glob("dry-run-*.json")).read_text(encoding="utf-8"))
    return answer.returncode, record, next(folder.glob("dry-run-*.md")).read_text(encoding="utf-8")


def test_sections_are_found_by_their_files_and_run_in_order() -> None:
    assert tuple(sections()) == SECTIONS
    files = {file.stem for file in (ROOT / "benchmarks" / "gpu" / "sections").glob("[a-z]*.py")}
    assert set(SECTIONS) == files


def whole(section: str, notes: dict[str, Any], table: str) -> bool:
    """Return whether a section found all that it is to find."""
    if section == "tests":
        outcomes = [told for file in notes.values() for told in file.values()]
        return len(outcomes) >= 12 and set(outcomes) == {"passed"}
    if section == "kernels":
        report = notes["report"]
        programs = {one["program"] for one in report["measured"]} == {"eager", "compile", "peer", "kernel"}
        # each operator, forward and backward
        rows = {table.count(f"| {one['operator']} | 64 × 32 float32 |") for one in report["measured"]}
        return programs and rows == {2} and not report["left_out"]
    if section == "layer":
        return len(notes["measured"]) == 8 and not notes["left_out"]  # four ways, two modes
    if section == "worker":
        return {"level", "first worker", "after preparing for lowering"} <= set(notes)
    if section == "references":
        return "| 06_schedule_encoder | 7 of 7 | nothing |" in table
    if section == "clock":
        return set(notes) == {"dry", "agreement", "attacks", "idle"}
    return bool(notes["checks"] if section == "timer" else notes["environment"])


def test_a_bare_machine_runs_its_sections_and_gets_a_record(tmp_path: Path) -> None:
    chosen = ["machine", *some(SECTIONS[1:], 1, name="sections of the GPU check")]
    status, record, table = gpu_check(tmp_path, chosen)

    assert status == 0, table
    assert record["dry_run"]
    assert list(record["sections"]) == chosen
    for name, part in record["sections"].items():
        assert part["ending"] == "done"
        assert whole(name, part["notes"], table), f"{name}\n{table}"
    assert table.count("nothing here says anything about a GPU") == len({"kernels", "layer"} & set(chosen))


def gpu_check_from_here(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *only: str, before: Before | None = None
) -> tuple[int, Any, str]:
    """Run the script in this process, whose forks the sections are; each fork calls `before`; return the same."""
    monkeypatch.setattr(running, "subprocess", ForkingSubprocess(before))
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--dry-run", "--results", str(folder), "--only", *only])
    status = script.main()
    (record,), (table,) = folder.glob("dry-run-*.json"), folder.glob("dry-run-*.md")
    return status, json.loads(record.read_text(encoding="utf-8")), table.read_text(encoding="utf-8")


def test_sections_that_end_badly_cost_the_others_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sections()
    doomed = {name: dataclasses.replace(found[name], budget_s=budget_s) for name, (_, _, budget_s) in FATES.items()}
    monkeypatch.setattr(script, "sections", lambda: {**doomed, "machine": found["machine"]})
    monkeypatch.setattr(running, "STOPPING_S", 0.5)

    def before(section: str) -> None:
        if section in FATES:
            FATES[section][0]()

    status, record, table = gpu_check_from_here(tmp_path, monkeypatch, "machine", *FATES, before=before)

    assert status == 1
    for name, (_, ending, _) in FATES.items():
        assert record["sections"][name]["ending"].startswith(ending)
        assert f"- {found[name].title}: {ending}" in table
    assert "out of memory" in record["sections"]["timer"]["told"]
    assert record["sections"]["machine"]["ending"] == "done"
    assert "## Machine" in table


def test_what_a_section_found_before_it_crashed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = dataclasses.replace(kernel_times.dry_plan(), compiler=lambda program: program)
    monkeypatch.setattr(kernel_times, "dry_plan", lambda: plan)

    def before(section: str) -> None:
        right = kernel_times.times

        def times(plan: kernel_times.Plan, operator: Operator, *others: Any) -> Iterator[kernel_times.Measured]:
            if operator.name == "bias_silu":
                os.abort()
            return right(plan, operator, *others)

        kernel_times.times = times

    status, record, table = gpu_check_from_here(tmp_path, monkeypatch, "kernels", before=before)

    assert status == 1
    measured = record["sections"]["kernels"]["notes"]["report"]["measured"]
    assert {one["operator"] for one in measured} == {"bias_gelu", "bias_gelu_tanh"}
    assert "| bias_gelu_tanh |" in table
    assert "crashed by SIGABRT" in table


def test_a_section_that_cannot_be_imported_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "benchmarks.kernel_cases", None)
    monkeypatch.delitem(sys.modules, "benchmarks.gpu.sections.layer")
    status, record, table = gpu_check_from_here(tmp_path, monkeypatch, "machine", "layer")

    assert status == 1
    assert record["sections"]["machine"]["ending"] == "done"
    assert "ModuleNotFoundError" in record["sections"]["layer"]["told"]
    assert "- layer: cannot be imported (ModuleNotFoundError" in table


def test_no_section_begins_when_no_time_is_left() -> None:
    assert {each.ending for each in run_all(sections(), "cpu", 1.0)} == {"not run: no time was left"}
    assert all(each.failures for each in run_all(sections(), "cpu", 1.0))


def test_an_operator_that_is_wrong_fails_its_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    # One in a thousand wrong, except in double precision, which is what the tests compare with.
    right = torch.nn.functional.silu
    monkeypatch.setattr("torch.nn.functional.silu", lambda x: right(x) * (1 if x.dtype.itemsize == 8 else 1.001))
    monkeypatch.setattr(sys.modules["course_lib.kernels.bias_silu"], "cpu_bodies", lambda *_: None)
    monkeypatch.setattr(gpu_tests, "subprocess", ForkingSubprocess())
    for name, value in {"GPU_CHECK_DEVICE": "cpu", "TRITON_INTERPRET": "0"}.items():
        monkeypatch.setenv(name, value)
    for module in [name for name in sys.modules if name.startswith("tests.gpu")]:
        monkeypatch.delitem(sys.modules, module)  # which has read what the device is
    found = gpu_tests.outcomes(ROOT / "tests" / "gpu" / "test_bias_operators.py", 120.0)

    assert found["test_values_agree_with_double_precision_on_the_cpu"].startswith("failed: AssertionError")
    assert "passed" in found.values()
    notes = {"test_bias_operators": found}
    assert len(gpu_tests.failures(notes)) == sum(told != "passed" for told in found.values())
    assert gpu_tests.failures(notes)[0] in gpu_tests.as_markdown(notes)


@pytest.mark.skipif(torch.cuda.is_available(), reason=skips.NO_GPU)
def test_a_machine_without_cuda_is_told_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu_check.py"])

    assert script.main() == 3
    assert "no CUDA device" in capsys.readouterr().err


def test_every_section_has_its_whole_budget_within_ten_minutes() -> None:
    assert sum(section.budget_s for section in sections().values()) <= script.BUDGET_S < 10 * 60
    assert list(sections())[1:3] == ["kernels", "layer"]  # a run that is cut short has them
    alone = sections()["machine"].budget_s + sections()["kernels"].budget_s
    assert alone <= 3 * 60


def test_a_timer_that_fails_on_cuda_fails_the_check() -> None:
    checks = [{"name": "side stream", "passed": False, "measured": 0.0, "unit": "µs", "told": "is seen"}]
    assert timer.failures({"dry": False, "checks": checks}) == ["side stream is 0 µs; is seen"]
    assert timer.failures({"dry": True, "checks": checks}) == []
    assert "**failed**" in timer.as_markdown({"checks": checks})


@pytest.mark.parametrize(
    ("triton", "numpy", "fails"), [("3.6.0", "2.4.6", True), ("3.6.0", "2.3.5", False), ("3.7.1", "2.4.6", False)]
)
def test_an_interpreter_that_fails_with_this_numpy_runs_no_loops(
    triton: str, numpy: str, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "version_of", {"triton": triton, "numpy": numpy}.get)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)

    told = running.interpreter_obstacle()
    assert told.startswith(skips.INTERPRETER) == fails
    assert running._environment("cpu", "kernels")["TRITON_INTERPRET"] == ("0" if fails else "1")
    assert running._environment("cpu", "tests")["TRITON_INTERPRET"] == "1"
    assert running._environment("cpu", "tests")["GPU_CHECK_NO_LOOPS"] == told
    notes = {"test_a": {"one": "passed", "two": f"skipped: {told}" if fails else "passed"}}
    assert gpu_tests.failures(notes) == []
    assert ("1 tests skipped: needs another" in gpu_tests.as_markdown(notes)) == fails


def test_a_worker_that_cannot_use_the_device_fails_the_check() -> None:
    fast, slow = ({"ratio": ratio, "answer_us": 1.0, "baseline_us": ratio} for ratio in (1.8, 0.9))
    notes = {"dry": False, "level": 3, "first worker": slow, "failed": "after preparing for lowering: no GPU"}
    assert worker.failures(notes) == ["after preparing for lowering: no GPU"]
    assert worker.missed(notes) == ["worker, first worker: the fused operator is 0.90 times as fast, not 1.3"]
    assert worker.missed({**notes, "first worker": fast}) == worker.missed({**notes, "dry": True}) == []
    assert "- level 3\nafter preparing" in worker.as_markdown(notes)


def test_a_test_that_was_skipped_has_not_passed() -> None:
    notes = {"test_a": {"one": "passed", "two": "skipped: no device"}}
    assert gpu_tests.failures(notes) == ["test_a::two skipped: no device"]
    assert gpu_tests.failures({}) == ["no test was run"]


def layer_notes(eager_us: float, kernel_us: float) -> dict[str, Any]:
    """Return notes of a layer whose ideal ratio is 2, in evaluation."""
    shared = {"mode": "evaluation", "bytes_moved": 10}
    eager = {"program": "eager", "median_us": eager_us, "ideal_us": 100.0, **shared}
    kernel = {"program": "kernel", "median_us": kernel_us, "ideal_us": 50.0, **shared}
    speeds = {"device": "cuda", "copy_gb_per_s": 4300.0, "product_tflop_per_s": 780.0}
    return {**speeds, "shape": "64 × 512 × 768 bfloat16", "measured": [eager, kernel], "left_out": []}


@pytest.mark.parametrize(("kernel_us", "sentences"), [(62.0, 1), (63.0, 2)])
def test_a_layer_is_to_reach_80_percent_of_its_ideal_ratio(kernel_us: float, sentences: int) -> None:
    notes = layer_notes(100.0, kernel_us)
    assert len(layer.missed(notes)) == sentences  # one is about training, which was not measured
    assert layer.missed(notes)[-1] == "layer, training: not measured"
    assert "| evaluation | 100 | – | – | " in layer.as_markdown(notes)
    assert layer.missed({**notes, "device": "cpu"}) == []


def test_notes_that_a_section_cannot_read_are_said_and_kept() -> None:
    broken = Section("Broken", 1, 1.0, lambda around: None, lambda notes: str(notes["absent"]))
    result = Result("broken", broken, "stopped after 3 s", 3.0, {"some": 1}, "last words")
    assert "cannot be written (KeyError" in result.markdown
    assert "last words" in result.markdown
    assert result.to_json()["notes"] == {"some": 1}
    assert result.failures == ["Broken: stopped after 3 s; what it had found by then is kept"]


def test_the_machine_section_tells_what_a_cuda_device_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    properties = SimpleNamespace(name="NVIDIA Stand-in", major=9, minor=0, total_memory=139 * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    used: list[str] = []
    monkeypatch.setattr(torch, "zeros", lambda size, device: used.append(device))
    monkeypatch.setattr(machine, "problems", lambda device: used.append("woken") or ())
    around = Run("cuda", tmp_path / "notes.json", end_s=0.0)
    machine.run(around)

    assert used == ["cuda", "woken"]  # or the environment would not ask for the device
    table = machine.as_markdown(json.loads(around.path.read_text(encoding="utf-8")))
    for fact in ("device: NVIDIA Stand-in", "capability: 9.0", "memory: 139 GiB", "torch 2."):
        assert fact in table


def test_a_reference_that_loses_points_or_a_badge_on_a_gpu_is_told() -> None:
    whole = {"points": 6.0, "max_points": 6.0, "seconds": 5.0, "lost": []}
    ratio = {"verdict": "pass", "ratio": 1.3, "low": 1.28, "high": 1.32, "full": 1.65}
    graded = {
        "right": {**whole, "measured": ratio | {"full": 1.2}},
        "slow": {**whole, "points": 5.0, "lost": ["launches: 1.30 times as fast"], "measured": ratio},
        "silver": {**whole, "measured": {"badge": "silver", "share": 0.8}},
        "too fast": {**whole, "lost": ["faster than memory allows"], "measured": {"badge": "none", "share": 1.4}},
        "late": {"left_out": "no time was left"},
        "other": {"left_out": running.INTERPRETER},
    }
    notes = {"graded": graded}

    assert references.failures(notes) == [
        "reference slow: 5 of 6 points; launches: 1.30 times as fast",
        "reference too fast: 6 of 6 points; faster than memory allows",
    ]
    assert [sentence.split(":")[0] for sentence in references.missed(notes)] == [
        f"reference {name}" for name in ("silver", "too fast", "late")
    ]
    assert "| slow | 5 of 6 | pass: 1.30 times as fast (1.28 to 1.32; 1.65 earn all) | 5 s |" in (
        references.as_markdown(notes)
    )
    assert references.failures({}) == references.missed({}) == []


def test_on_cuda_the_sizes_are_those_that_the_targets_are_for(tmp_path: Path) -> None:
    plan = layer.plan_of(Run("cuda", tmp_path / "notes.json", end_s=0.0))
    assert plan.batch * plan.sequence >= 32_000
    assert (plan.config.hidden_size, plan.config.intermediate_size, plan.dtype) == (768, 3072, torch.bfloat16)
    kernels = kernel_times.cuda_plan()
    assert sum(rows >= kernel_times.ENOUGH_ROWS for rows, _ in kernels.sizes) >= 2
    assert kernels.budget_s < sections()["kernels"].budget_s
    # On an H200 an operator took 8 s, of which eight samples of 0.25 s with warming up took 2.4 s.
    measured = len(operators(kernels.compiler)) * len(kernels.sizes)
    assert measured == 21
    assert measured * (8.0 - 8 * 1.2 * (0.25 - kernels.sample_s)) < kernels.budget_s


def test_a_file_of_tests_that_pytest_cannot_run_is_a_failure(tmp_path: Path) -> None:
    broken = tmp_path / "test_broken.py"
    broken.write_text("import os\nos.abort()\n", encoding="utf-8")
    crashed = gpu_tests.outcomes(broken, 60.0)
    assert crashed["(all)"].startswith("failed: pytest ended with -6")
    broken.write_text("import time\n\ndef test_never_ends():\n    time.sleep(600)\n", encoding="utf-8")
    assert gpu_tests.outcomes(broken, 1.0) == {"(all)": "failed: no time was left"}


def test_a_way_to_compute_the_layer_that_fails_is_listed_and_the_others_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(program: object) -> object:
        raise RuntimeError("no compiler here")

    plan = dataclasses.replace(kernel_times.dry_plan(), compiler=refuse)
    monkeypatch.setattr(kernel_times, "dry_plan", lambda: plan)
    around = Run("cpu", tmp_path / "notes.json", end_s=time.monotonic() + 600)
    layer.run(around)

    assert {one["program"] for one in around.notes["measured"]} == {"eager", "kernel"}
    assert len(around.notes["left_out"]) == 4  # two ways, two modes
    assert "no compiler here" in layer.as_markdown(around.notes)
    assert layer.ratios(around.notes, "evaluation")["bytes"] > 1


def test_all_ways_compute_the_same_layer() -> None:
    config = TransformerConfig(32, 2, 64)
    model = build_layer(config, "cpu", torch.float64, training=False)
    x = torch.randn(2, 5, 32, dtype=torch.float64)
    for name, make in programs(model, x, lambda program: program):
        rounding = 1e-3 if name == "peer" else 1e-9  # GELU by the tanh formula is another function
        torch.testing.assert_close(make()(x), model(x), rtol=rounding, atol=rounding)
