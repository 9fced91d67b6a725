"""Attacks on the clock: each fools a naive timer, and none gets a PASS from the judge's clock."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from autograder.host.clock.trial import Plan, Trial, WrongTimedOutputError
from autograder.host.clock.verdict import DISTURBANCE_LIMIT, enough
from autograder.host.exercise import CheckFailedError
from autograder.host.sandbox import Sandbox, open_sandbox
from autograder.host.session import AnswerFailedError
from course_lib.timing import Verdict, decide_speedup
from tests.architecture.source_tree import ROOT
from tests.autograder.host.forked_command import fork_command
from tests.autograder.host.timed_exercise import HONEST, SPEED, contest_of, contest_of_pass
from tests.drawn import some

HOSTILE = ROOT / "tests" / "submissions" / "hostile" / "speed"
# Each has processes of its own to start, so a run tries a part of them; the attack suite's benchmark tries all.
ATTACKS = some(sorted(HOSTILE.glob("*.py")), 8, name="attacks on the clock")
NAIVE_TIMER = ROOT / "tests" / "autograder" / "host" / "hostile" / "naive_timer.py"
# One round a side in each pair also where the machine is loaded: nothing here depends on how much the times scatter.
ASKED = SPEED.thresholds("cpu", rebuilt=False)
PLAN = Plan(max_pairs=12, budget_s=2.0, tries=1, enough=enough(ASKED))
IDS = [path.stem for path in ATTACKS]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield open_sandbox()
    torch.set_num_threads(threads)


# One test, since processes that share tests out would each let the naive timer take all the times.
def test_an_attack_on_the_clock_fools_a_naive_timer(tmp_path):
    command = [str(NAIVE_TIMER), *map(str, ATTACKS)]
    told = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    _, printed = fork_command(command, ROOT, os.environ | told).finish()
    believed = dict.fromkeys(IDS, 0.0)
    for name, ratio in re.findall(r"^(\w+) ([\d.e+-]+)$", printed, re.MULTILINE):
        believed[name] = max(float(ratio), believed[name])

    assert {name: ratio for name, ratio in believed.items() if ratio < 1.3} == {}


# What the judge says where it does not only find that an answer is slow.
REFUSED = {
    "answers_now_writes_later": "fresh inputs|still being written",
    "cache_by_first_rows": "fresh inputs",
    "cache_by_sample": "fresh inputs",
    "cache_by_shape": "fresh inputs",
    "computes_in_warm_up": "fresh inputs",
    "finished_graph_by_size": "calls other operators|off by",
    "lazy_result": "is not a torch.Tensor of",
    "output_aliases_input": "wrote into its inputs",
    "previous_output": "fresh inputs",
    "right_at_first_by_the_clock": "fresh inputs",
    "right_for_strided_inputs": "fresh inputs",
    "right_in_fp64": "fresh inputs",
    "right_where_marked": "fresh inputs",
    "writes_into_timed_inputs": "calls other operators|off by",
}


def test_every_refused_answer_is_an_attack():
    assert {path.stem for path in HOSTILE.glob("*.py")} >= set(REFUSED)


def outcome_of(path: Path, sandbox: Sandbox) -> Trial | str:
    """Time the answer in a file as the judge does; return the trial, or why there is none."""
    text = path.read_text()
    try:
        of = contest_of_pass(text, sandbox) if "def fuse(" in text else contest_of(text, sandbox)
        return of.trial(PLAN)
    except (WrongTimedOutputError, AnswerFailedError, CheckFailedError) as error:
        return str(error)


@pytest.mark.parametrize("path", ATTACKS, ids=IDS)
def test_an_attack_on_the_clock_never_passes_and_a_wrong_output_is_called_wrong(path, sandbox):
    outcome = outcome_of(path, sandbox)

    if isinstance(outcome, str):
        # others may meet an address again
        assert re.search(REFUSED.get(path.stem, "fresh inputs|longer than"), outcome)
    else:
        assert not REFUSED.get(path.stem)
        if outcome.disturbance <= DISTURBANCE_LIMIT:
            assert decide_speedup(outcome.credited, ASKED.passing).verdict is not Verdict.PASS


BAD_ENDS = [
    ("a scalar that would broadcast", "def gate(x, bias):\n    return (x * 0).sum()\n", "is not a torch.Tensor of"),
    ("half precision", "def gate(x, bias):\n    return F.silu(x + bias).half()\n", "is not a torch.Tensor of"),
    ("two outputs", "def gate(x, bias):\n    return x, x\n", "returned 2 outputs"),
    ("an exception", "def gate(x, bias):\n    return 1 / 0\n", "ZeroDivisionError"),
    ("no end", "def gate(x, bias):\n    while True: pass\n", "longer than the 1.5 s"),
]


@pytest.mark.parametrize(("name", "text", "words"), BAD_ENDS, ids=[name for name, *_ in BAD_ENDS])
def test_a_timed_call_without_outputs_reports_why(name, text, words, sandbox):
    with pytest.raises(AnswerFailedError, match=words):
        contest_of(text, sandbox, wall_s=1.5).trial(PLAN)


def test_outputs_written_into_the_shared_memory_are_right_too(sandbox):
    text = "def gate(x, bias, out):\n    torch.add(x, bias, out=out)\n    F.silu(out, inplace=True)\n"
    trial = contest_of(text, sandbox, into=True).trial(Plan(max_pairs=9, budget_s=0.1, tries=1))

    assert len(trial.pairs) == 9
    assert trial.bare_us <= trial.empty_us


def test_the_honest_answer_is_right_in_every_round(sandbox):
    assert len(contest_of(HONEST, sandbox).trial(PLAN).pairs) >= 9
