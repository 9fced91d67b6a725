"""The settings of a course: found from where a command runs, and refused in one sentence if one is wrong."""

from pathlib import Path

import pytest

from autograder.host import settings
from autograder.host.settings import Settings, SettingsError, course_settings, own_settings, read_settings


def written(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / settings.FILE
    path.write_text(text)
    return path


def test_in_a_notebook_the_nearest_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "INSTALLATION", tmp_path / "nowhere")
    below = tmp_path / "course" / "notebooks"
    below.mkdir(parents=True)
    assert own_settings(below) == Settings("auto", False)

    written(tmp_path / "course", 'device = "cuda:1"\nmeasured = true\n')
    assert own_settings(below) == Settings("cuda:1", True)
    written(below, 'device = "cpu"\n')
    assert own_settings(below) == Settings("cpu", False)


def test_a_grading_command_reads_no_file_that_a_student_put_where_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "INSTALLATION", tmp_path / "installed")
    written(tmp_path / "installed", 'device = "cuda:1"\n')
    written(tmp_path / "course", 'device = "cuda:2"\n')
    (tmp_path / "course" / "nbgrader_config.py").touch()
    written(tmp_path / "course" / "submitted" / "ada", 'device = "cpu"\n')

    monkeypatch.chdir(tmp_path / "course" / "submitted" / "ada")
    assert course_settings() == Settings("cuda:1")
    monkeypatch.chdir(tmp_path / "course")
    assert course_settings() == Settings("cuda:2")


def test_the_file_of_this_course_holds_the_defaults() -> None:
    assert read_settings(settings.INSTALLATION / settings.FILE) == Settings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('device = "gpu"', "device is 'gpu'; expected auto, cpu, cuda or cuda:N"),
        ("device = 1", "device is 1; expected auto"),
        ('device = ["cuda"]', "device is a list; expected auto"),
        ('measured = "yes"', "measured is 'yes'; expected true or false"),
        ("measured = 1", "measured is 1; expected true or false"),
        ('devise = "cuda"', "there is no setting 'devise'; expected device or measured"),
        ("device = cuda", "cannot be read as TOML"),
    ],
)
def test_a_wrong_setting_is_one_sentence_with_the_file_the_value_and_what_is_expected(
    tmp_path: Path, text: str, words: str
) -> None:
    path = written(tmp_path, text)

    with pytest.raises(SettingsError) as caught:  # the whole message is compared below
        read_settings(path)
    assert str(caught.value).startswith(str(path))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
