"""The selected level, the refused levels, and their errors."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.host.sandbox import (
    Limits,
    Sandbox,
    SandboxError,
    bubblewrap,
    confined,
    describe,
    open_sandbox,
    probe_record,
    selection,
)
from autograder.host.sandbox.inside.attacks import ATTACKS
from autograder.host.sandbox.probe import LIMITS, Finding, probe
from autograder.host.sandbox.probe import _closed as closed
from tests import skips
from tests.autograder.host.sandbox.conftest import opened

ROOT = Path(__file__).parents[4]
ORDINARY = "65534"
DEBIAN_PYTHON = "/usr/bin/python3"


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clear the results of probes, before and after, and record new ones in a folder of the test."""
    monkeypatch.setattr(probe_record, "ROOTS_FOLDER", tmp_path / "records")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    selection._attempt.cache_clear()
    yield
    selection._attempt.cache_clear()


def test_every_attack_of_the_probe_succeeds_unprotected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_THE_HOST", "token")
    program = (
        "import json, os, socket, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from autograder.host.sandbox.inside import attacks\n"
        "from autograder.host.sandbox.probe import _targets\n"
        "os.dup2(1, 9)\n"
        "with _targets() as target: print(json.dumps(dict(attacks.gains(target))))"
    )
    command = [sys.executable, "-c", program]
    gained = json.loads(subprocess.run(command, capture_output=True, start_new_session=True, timeout=20).stdout)

    expected = set(ATTACKS) - (set() if os.geteuid() == 0 else {"write_elsewhere"})
    assert {name for name, what in gained.items() if what} >= expected


def test_every_attack_of_the_probe_is_contained(tier: Sandbox) -> None:
    findings = probe(tier)

    assert [finding.attack for finding in findings] == list(ATTACKS)
    assert [finding for finding in findings if not finding.contained] == []


def test_level_5_contains_almost_nothing() -> None:
    contained = {finding.attack for finding in probe(open_sandbox(5, trust=True)) if finding.contained}

    assert contained <= {"use_descriptors", "use_memory", "write_elsewhere"}


def test_a_level_whose_probe_is_not_contained_is_skipped(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "probe", lambda sandbox: (Finding("connect", False, "TCP"),))

    with pytest.raises(SandboxError, match=r"could connect to a server on the host \(TCP\)"):
        open_sandbox()


def test_the_probe_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened("auto")
    monkeypatch.setattr(selection, "probe", lambda sandbox: pytest.fail("probed again"))

    assert open_sandbox() is first


@pytest.mark.parametrize(
    ("level", "sentence"),
    [
        (5, "Level 5 isolates nothing"),
        (0, "There is no level 0"),
        (6, "There is no level 6"),
    ],
)
def test_an_impossible_level_is_refused_in_a_sentence(level: int, sentence: str) -> None:
    with pytest.raises(SandboxError, match=sentence):
        open_sandbox(level)


def test_trust_does_not_lower_the_level_where_there_is_isolation() -> None:
    assert open_sandbox(trust=True) is opened("auto")


def test_a_machine_without_bubblewrap_is_told_the_package(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name, path: None)
    monkeypatch.setattr(confined, "landlock_version", lambda: 0)

    with pytest.raises(SandboxError, match="apt-get install bubblewrap"):
        open_sandbox()
    assert open_sandbox(trust=True).level == 5
    assert "no isolation" in describe()


def test_a_machine_that_refuses_namespaces_is_told_what_to_allow(
    fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "find_bubblewrap", lambda: str(refusing))
    monkeypatch.setattr(confined, "landlock_version", lambda: 0)

    with pytest.raises(SandboxError, match=r"does not allow new namespaces .*unprivileged_userns_clone"):
        open_sandbox()


@pytest.mark.skipif(os.geteuid() != 0, reason=skips.ROOT)
def test_files_that_the_worker_cannot_read_are_named(
    fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "python"
    shutil.copy(Path(sys.executable).resolve(), private)
    private.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(private))
    monkeypatch.setattr("autograder.host.sandbox.view.ETC_FILES", (str(private),))

    with pytest.raises(SandboxError, match=rf"may not read {private}; .*chmod -R go\+rX"):
        open_sandbox(2)


def test_the_description_names_level_promises_and_each_attack(sandbox: Sandbox) -> None:
    text = describe()

    assert text.startswith(f"This machine has level {sandbox.level}:")
    assert "4 confined, same user: " in text
    assert "5 none: only with --i-trust-this-code" in text
    assert text.count("  refused    ") >= len(ATTACKS)
    assert "SUCCEEDED" not in text


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path(DEBIAN_PYTHON).exists(), reason=f"{skips.ROOT}, and an interpreter that all may read"
)
def test_an_ordinary_user_has_level_2_and_level_4_as_far_as_the_kernel_can() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from autograder.host.sandbox import describe, open_sandbox\n"
        "print(describe())\n"
        "print('opened level', int(open_sandbox().level))"
    )
    become = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--"]
    if subprocess.run([*become, "test", "-r", str(ROOT / "autograder")], check=False).returncode:
        pytest.skip(f"{skips.PLACE}: this checkout")

    done = subprocess.run(
        [*become, DEBIAN_PYTHON, "-I", "-B", "-c", program],
        env={"TOKEN_OF_THE_HOST": "token"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "opened level 2" in done.stdout, done.stdout + done.stderr
    assert "bubblewrap as an ordinary user" in done.stdout
    works = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(": works here")}
    assert works >= {"2"}
    assert done.stdout.count("  refused    ") == len(works) * len(ATTACKS)


@pytest.mark.parametrize("field", ["wall_s", "memory_bytes", "processes", "tmp_bytes", "file_bytes", "output_bytes"])
def test_a_limit_of_nothing_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"Limits.{field} is 0; it must be above 0"):
        Limits(**{field: 0})


def test_the_probe_is_bounded() -> None:
    assert LIMITS.memory_bytes * 3 // 2 <= 256 << 20
    assert LIMITS.processes <= 64


@pytest.mark.parametrize(
    ("is_interpreter", "what", "do"),
    [(True, "The interpreter /a/b/python cannot", "/usr/bin/python3 -m venv"), (False, "The folder /a/b", "move the")],
)
def test_a_path_that_other_users_cannot_reach_is_named_with_a_remedy(is_interpreter: bool, what: str, do: str) -> None:
    sentence = closed(Path("/a/b/python"), Path("/a"), is_interpreter=is_interpreter)

    assert sentence.startswith(what)
    assert "they may not enter /a;" in sentence
    assert do in sentence
