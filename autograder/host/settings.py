"""The course's settings in `course.toml`: what answers compute on, and whether times of a CPU earn points.

    device = "auto"
    measured = false

Commands that grade read the file beside the course's nbgrader_config.py, and never one of a folder that students can
write to. In a notebook, it may lie in the working directory or above it. A setting that is unknown or has a wrong value
is an error, since a misspelt one would change marks without a word.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from autograder.host.sandbox import AUTO, is_device_name

FILE, OF_CLASS = "course.toml", ("dropped", "assistants")  # settings that `classroom` alone reads and checks
INSTALLATION = Path(__file__).parents[2]
COURSE_FILE = "nbgrader_config.py"  # is run where it lies in the working directory, so that folder is trusted
MOST_BYTES = 64 << 10
DEVICES = "auto, cpu, cuda or cuda:N"


class SettingsError(Exception):
    """The settings file is wrong; the message says which line, what it holds, and what is expected."""

    exit_code = 2  # of a command that fails with this error


@dataclass(frozen=True)
class Settings:
    """The settings of a course."""

    device: str = AUTO
    measured: bool = False


def is_device_choice(name: object) -> bool:
    """Return whether `name` is `auto` or written like a device.

    >>> is_device_choice("cuda:1"), is_device_choice("gpu")
    (True, False)
    """
    return isinstance(name, str) and (name == AUTO or is_device_name(name))


def course_settings() -> Settings:
    """Return the settings of the course in the working directory, or else of this installation."""
    here = Path.cwd()
    path = (here if (here / COURSE_FILE).is_file() else INSTALLATION) / FILE
    return read_settings(path) if path.is_file() else Settings()


def own_settings(start: Path) -> Settings:
    """Return the settings in the nearest file from `start` upwards, for whoever runs only answers of their own."""
    start = start.resolve()
    for folder in (start, *start.parents, INSTALLATION):
        if (folder / FILE).is_file():
            return read_settings(folder / FILE)
    return Settings()


def read_settings(path: Path) -> Settings:
    """Return the settings in the file `path`; raises `SettingsError` for a wrong one."""
    try:
        with path.open("rb") as file:
            found = tomllib.loads(file.read(MOST_BYTES).decode())
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read as TOML: {error}.") from None
    _require_known(found, path)
    settings = Settings(**{name: value for name, value in found.items() if name not in OF_CLASS})
    if not is_device_choice(settings.device):
        raise SettingsError(f"{path}: device is {_shown(settings.device)}; expected {DEVICES}, in quotes.")
    if not isinstance(settings.measured, bool):
        raise SettingsError(f"{path}: measured is {_shown(settings.measured)}; expected true or false, without quotes.")
    return settings


def _require_known(found: Mapping[str, object], path: Path) -> None:
    known = [*(field.name for field in fields(Settings)), *OF_CLASS]
    unknown = [name for name in found if name not in known]
    if unknown:
        raise SettingsError(f"{path}: there is no setting {unknown[0]!r}; expected {' or '.join(known)}.")


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str | int | float | bool) else f"a {type(value).__name__}"
