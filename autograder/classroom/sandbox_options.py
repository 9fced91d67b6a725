"""The options of a command that choose the isolation of answers and their device."""

import argparse

from autograder.course_settings import DEVICES, Settings, course_settings, is_device_choice
from autograder.host.sandbox import Sandbox, open_sandbox


def add_sandbox(command: argparse.ArgumentParser) -> None:
    """Add the options that choose the isolation and the device to `command`."""
    command.add_argument("--sandbox", choices=("auto", "1", "2", "3", "4", "5"), default="auto", help="isolation level")
    told = f"{DEVICES}: what answers compute on; by default as course.toml says"
    command.add_argument("--device", type=_device, help=told)
    told = "whether measured speed earns points on a CPU, too; by default as course.toml says"
    command.add_argument("--measured", action=argparse.BooleanOptionalAction, help=told)
    command.add_argument("--i-trust-this-code", action="store_true", help="allow level 5: no isolation")


def open_chosen(options: argparse.Namespace) -> Sandbox:
    """Open the sandbox that the options of `add_sandbox` name."""
    level = options.sandbox if options.sandbox == "auto" else int(options.sandbox)
    chosen = chosen_settings(options)
    return open_sandbox(level, trust=options.i_trust_this_code, device=chosen.device, measured=chosen.measured)


def chosen_settings(options: argparse.Namespace) -> Settings:
    """Return the settings of the course, as far as the options say nothing else."""
    settings = course_settings()
    return Settings(
        settings.device if options.device is None else options.device,
        settings.measured if options.measured is None else options.measured,
    )


def _device(text: str) -> str:
    if not is_device_choice(text):
        raise argparse.ArgumentTypeError(f"{text!r} given, {DEVICES} expected")
    return text
