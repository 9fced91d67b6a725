"""The doctor reads this machine as it is, and says of what is missing what to do."""

import json
import platform
import sys
from types import SimpleNamespace

import pytest
import torch

from course_lib import doctor as examination
from course_lib.doctor import Finding, Health, Report, doctor
from course_lib.timing.environment import version_of

HERE = doctor()


def test_what_it_reads_is_this_machine() -> None:
    assert HERE["python"].found == platform.python_version()
    assert HERE["torch"].found.split("+")[0] == torch.__version__.split("+")[0]
    assert HERE["cuda"].health is (Health.FINE if torch.cuda.is_available() else Health.NOTE)
    assert "without a notebook" in HERE["interpreter"].found


def test_a_complete_machine_is_healthy_and_its_report_is_plain_data() -> None:
    assert HERE.healthy, str(HERE)
    assert json.loads(json.dumps(HERE.to_json())) == HERE.to_json()
    assert {type(f["health"]) for f in HERE.to_json()["findings"]} == {str}
    assert [f["name"] for f in HERE.to_json()["findings"]] == [f.name for f in HERE.findings]


CASES = [
    ("an old Python", lambda: examination._python((3, 9), "3.9.1"), "mend", "3.11"),
    ("no torch", lambda: examination._torch("not found"), "mend", "constraints.txt"),
    ("another torch", lambda: examination._torch("2.11.0"), "note", "2.13"),
    ("this torch", lambda: examination._torch("2.13.0+cu128"), "fine", ""),
    (
        "a missing package",
        lambda: examination._needed("numpy", "not found", "constraints.txt", Health.MEND),
        "mend",
        "constraints.txt",
    ),
    ("no compiler", lambda: examination._compiler("not found", has_headers=True), "mend", "g++"),
    ("no headers", lambda: examination._compiler("g++ 12", has_headers=False), "mend", "python3-dev"),
    ("no graphviz", lambda: examination._needed("graphviz", "not found", "shown as text"), "note", "shown as text"),
    ("too many threads", lambda: examination._threads(8, 2), "note", "OMP_NUM_THREADS"),
    ("a full disk", lambda: examination._disk(2**20), "mend", "make room"),
    ("offline", lambda: examination._offline("1"), "fine", ""),
    ("not told to stay offline", lambda: examination._offline(""), "fine", "HF_HUB_OFFLINE=1"),
]


@pytest.mark.parametrize(("name", "examined", "health", "words"), CASES, ids=[c[0] for c in CASES])
def test_what_is_found_comes_with_advice(name, examined, health, words) -> None:
    finding = examined()
    assert finding.health == health
    assert words in finding.advice


@pytest.mark.parametrize(
    ("kernel", "health", "words"),
    [
        (lambda: torch.ones(1024), "fine", ""),
        (lambda: torch.zeros(1024), "mend", "kernels for sm_75, sm_80"),
        (lambda: _refused(), "mend", "CUDA_VISIBLE_DEVICES="),
    ],
    ids=["a kernel runs", "it computes nothing", "there is none for this GPU"],
)
def test_a_gpu_is_fine_only_if_a_kernel_ran(kernel, health, words, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(
        is_available=lambda: True,
        get_device_name=lambda: "Tesla P100-PCIE-16GB",
        get_device_capability=lambda: (6, 0),
        get_arch_list=lambda: ["sm_75", "sm_80"],
    )
    stand_in = SimpleNamespace(cuda=cuda, version=SimpleNamespace(cuda="12.8"), ones=lambda *size, device: kernel())
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    finding = examination._cuda()

    assert finding.health == health
    assert words in finding.advice
    assert finding.found.startswith("Tesla P100-PCIE-16GB (sm_60), CUDA 12.8, ")


def _refused() -> torch.Tensor:
    raise RuntimeError("CUDA error: no kernel image is available for execution on the device")


def test_a_program_that_is_not_there_is_not_found() -> None:
    assert examination._asked("no-such-program-here", "--version") == "not found"
    assert version_of("no-such-package-here") is None


def test_the_verdict_names_what_is_to_be_mended_in_text_and_html() -> None:
    report = Report((Finding("torch", "<none>", Health.MEND, "install"), Finding("python", "3.11", Health.FINE)))
    assert not report.healthy
    for shown in (str(report), report._repr_html_()):
        assert "To be mended first: torch." in shown
    assert "&lt;none&gt;" in report._repr_html_()


def test_a_name_that_was_not_looked_at_is_answered_with_those_that_were() -> None:
    with pytest.raises(KeyError, match="python, "):
        HERE["colour"]


def test_every_package_that_only_later_lessons_need_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("triton", "onnx", "onnxscript", "onnxruntime", "netron", "ai-edge-model-explorer", "lightning"):
        assert HERE[name].health is Health.FINE
    monkeypatch.setattr(examination, "version_of", lambda name: None if name == "lightning" else version_of(name))
    there = doctor()
    assert not there.healthy
    assert there["lightning"].advice == "Needed in lesson 16; install the versions of constraints.txt."
