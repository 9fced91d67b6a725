"""What a probe found is kept until the kernel, the user or the configuration changes."""

import os
from pathlib import Path

import pytest

from autograder.host.sandbox import open_sandbox, probe_record, selection
from autograder.host.sandbox.probe import Finding


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the records, empty."""
    monkeypatch.setattr(probe_record, "ROOTS_FOLDER", tmp_path / "autograder")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "autograder"


def test_a_record_is_of_one_level_and_says_why_workers_start_cold(records: Path) -> None:
    assert probe_record.read(1) is None
    probe_record.keep(1, "")
    probe_record.keep(3, "no zygote")
    assert [probe_record.read(level) for level in (1, 2, 3)] == ["", None, "no zygote"]
    assert records.stat().st_mode & 0o077 == 0
    assert len(list(records.iterdir())) == 2


def test_a_changed_setting_right_or_source_needs_another_probe(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "setting").write_text("1")
    (tmp_path / "package" / "worker").mkdir(parents=True)
    monkeypatch.setattr(probe_record, "SETTINGS", (str(tmp_path / "setting"),))
    monkeypatch.setattr(probe_record, "PACKAGE", tmp_path / "package")
    monkeypatch.setattr(probe_record, "PROGRAMS", (str(tmp_path / "program"),))
    changes = (
        lambda: (tmp_path / "setting").write_text("2"),
        lambda: (tmp_path / "program").touch(),
        lambda: (tmp_path / "program").chmod(0o700),
        lambda: (tmp_path / "package" / "worker" / "new.py").touch(),
        lambda: (tmp_path / "package").chmod(0o701),
        lambda: monkeypatch.setattr(probe_record, "RIGHTS", ("Uid:",)),
    )
    for change in changes:
        probe_record.keep(1, "")
        assert probe_record.read(1) == ""
        change()
        assert probe_record.read(1) is None


def test_a_folder_that_others_can_enter_is_neither_read_nor_written(records: Path) -> None:
    probe_record.keep(1, "")
    records.chmod(0o755)
    assert probe_record.read(1) is None
    probe_record.keep(2, "")
    assert len(list(records.iterdir())) == 1


def test_a_link_in_place_of_the_folder_is_not_followed(records: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    records.symlink_to(tmp_path / "elsewhere")
    probe_record.keep(1, "")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_without_a_place_every_process_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    probe_record.keep(1, "")
    assert probe_record.read(1) is None


def test_a_level_on_record_is_not_attacked_again(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attacked: list[int] = []

    def probe(sandbox: object, *, forked: bool = False) -> tuple[Finding, ...]:
        attacked.append(1)
        return ()

    monkeypatch.setattr(selection, "probe", probe)
    for _ in range(2):
        selection._attempt.cache_clear()
        opened = open_sandbox()
        if opened.zygotes:
            opened.zygotes.close()
    first = len(attacked)
    assert first
    monkeypatch.setattr(selection, "_successes", lambda findings: "read a file of the host (x)" if attacked else "")
    selection._attempt.cache_clear()
    assert open_sandbox().level == opened.level
    assert len(attacked) == first
    selection._attempt.cache_clear()
