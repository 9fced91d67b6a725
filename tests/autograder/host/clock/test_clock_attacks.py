"""Attacks on the clock: each fools a naive timer, and none gets a PASS from the judge's clock."""

import os
import re
from collections.abc import Iterator

import pytest
import torch

from autograder.host.clock.trial import Plan, Trial, WrongTimedOutputError
from autograder.host.clock.verdict import enough
from autograder.host.sandbox import Sandbox, open_sandbox
from autograder.host.session import AnswerFailedError
from course_lib.timing import Verdict, decide_speedup
from tests.architecture.source_tree import ROOT
from tests.autograder.host.forked_command import fork_command
from tests.autograder.host.timed_exercise import HONEST, SPEED, contest_of

ATTACKS = sorted((ROOT / "tests" / "submissions" / "hostile" / "speed").glob("*.py"))
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
def test_every_attack_on_the_clock_fools_a_naive_timer():
    command = [str(NAIVE_TIMER), *map(str, ATTACKS)]
    _, printed = fork_command(command, ROOT, os.environ | {"OMP_NUM_THREADS": "1"}).finish()
    believed = dict.fromkeys(IDS, 0.0)
    for name, ratio in re.findall(r"^(\w+) ([\d.e+-]+)$", printed, re.MULTILINE):
        believed[name] = max(float(ratio), believed[name])

    assert {name: ratio for name, ratio in believed.items() if ratio < 1.3} == {}


# The messages on outputs that are replayed or not finished.
WRONG = {
    "previous_output": "fresh inputs",
    "cache_by_shape": "fresh inputs",
    "computes_in_warm_up": "fresh inputs",
    "answers_now_writes_later": "fresh inputs|still being written",
    "output_aliases_input": "wrote into its inputs",
}


def test_every_listed_wrong_output_belongs_to_an_attack():
    assert set(WRONG) <= set(IDS)


@pytest.mark.parametrize("path", ATTACKS, ids=IDS)
def test_an_attack_on_the_clock_never_passes_and_a_wrong_output_is_called_wrong(path, sandbox):
    outcome: Trial | str
    try:
        outcome = contest_of(path.read_text(), sandbox).trial(PLAN)
    except (WrongTimedOutputError, AnswerFailedError) as error:
        outcome = str(error)

    if path.stem in WRONG:
        assert isinstance(outcome, str)
        assert re.search(WRONG[path.stem], outcome)
    elif isinstance(outcome, Trial) and outcome.disturbance <= 1.25:
        assert decide_speedup(outcome.pairs, ASKED.passing).verdict is not Verdict.PASS


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
