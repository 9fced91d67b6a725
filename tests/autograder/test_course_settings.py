"""The settings of a course: found from where a command runs, and refused in one sentence if one is wrong."""

from pathlib import Path

import pytest

from autograder import course_settings as settings
from autograder.course_settings import Late, Settings, SettingsError, course_settings, own_settings, read_settings


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


def test_a_time_without_a_zone_takes_the_courses_and_one_with_a_zone_is_shown_in_it(tmp_path: Path) -> None:
    text = 'time_zone = "Europe/Berlin"\n[due]\n00_a = 2027-01-11T23:59:00\n01_b = 2027-07-11T23:59:00Z\n'
    found = read_settings(written(tmp_path, text)).due
    assert [f"{due:%Y-%m-%d %H:%M %z}" for due in found.values()] == [
        "2027-01-11 23:59 +0100",
        "2027-07-12 01:59 +0200",
    ]


def test_late_rules_are_read(tmp_path: Path) -> None:
    text = "late_days = 5\nlate = {days = 2, percent_per_day = 10}\n"
    found = read_settings(written(tmp_path, text))
    assert (found.late_days, found.late) == (5, Late(2, 10.0))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('device = "gpu"', "device is 'gpu'; expected auto, cpu, cuda or cuda:N"),
        ("device = 1", "device is 1; expected auto"),
        ('device = ["cuda"]', "device is a list; expected auto"),
        ('measured = "yes"', "measured is 'yes'; expected true or false"),
        ("measured = 1", "measured is 1; expected true or false"),
        ('devise = "cuda"', "devise is not a setting; did you mean device?"),
        ("[x]", "x is not a setting. The settings are device, measured, notebooks"),
        ('notebooks = "00_start_here"', "notebooks is '00_start_here'; expected a list"),
        ("dropped = [1]", "dropped is a list; expected a list, as"),
        ('notebooks = ["a", "b", "a"]', "notebooks names 'a' twice"),
        ("[due]\na = 2027-01-11T23:59:00", "due has 2027-01-11 23:59:00 for a without a time zone; write it as"),
        ("[due]\na = 2027-01-11", "due has 2027-01-11 for a; expected a date and a time"),
        ('[due]\na = "2027-01-11 23:59"', "due has '2027-01-11 23:59' for a; expected a date and a time"),
        ("due = 2027-01-11T23:59:00Z", "due is 2027-01-11 23:59:00+00:00; expected a table"),
        ('notebooks = ["04_x"]\n[due]\n04_y = 2027-01-11T23:59:00Z', "due names '04_y', which is not in `notebooks`"),
        ('time_zone = "Berlin"', "time_zone is 'Berlin'; expected a zone, as"),
        ('time_zone = "../../../etc/passwd"', "expected a zone"),
        ("time_zone = 1", "time_zone is 1; expected a zone"),
        ("time_zone = 0", "time_zone is 0; expected a zone"),
        ("time_zone = false", "time_zone is False; expected a zone"),
        ("time_zone = []", "time_zone is a list; expected a zone"),
        (f"# {'x' * 70_000}\ndevice = 'cpu'", "has more than 65,536 bytes"),
        ("[due]\na = 2027-01-12", "2027-01-11T23:59:00+01:00, without quotes around the time."),
        ("late_days = 5", "late_days is set, and nothing is deducted without `late`"),
        ("late_days = -1", "late_days is -1; expected a whole number"),
        ("late = 2", "late is 2; expected a table"),
        ("[due]\nlate = {days = 2}", "late is below the line [due]"),
        ("late = {days = 2}", "late lacks percent_per_day"),
        ("late = {day = 2}", "late.day is not a setting; did you mean days?"),
        ("late = {days = true, percent_per_day = 10}", "days is True; expected a whole number"),
        ("late = {days = 2, percent_per_day = 101}", "percent_per_day is 101; expected a number from 0 to 100"),
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
