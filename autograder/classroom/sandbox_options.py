"""The options of a command that choose the isolation of answers and their device."""

import argparse

from autograder.host.sandbox import Sandbox, is_device_name, open_sandbox


def add_sandbox(command: argparse.ArgumentParser) -> None:
    """Add the options that choose the isolation and the device to `command`."""
    command.add_argument("--sandbox", choices=("auto", "1", "2", "3", "4", "5"), default="auto", help="isolation level")
    told = "cpu, cuda or cuda:N: what answers compute on; measured speed earns points on a GPU only"
    command.add_argument("--device", type=_device, default="cpu", help=told)
    command.add_argument("--i-trust-this-code", action="store_true", help="allow level 5: no isolation")


def open_chosen(options: argparse.Namespace) -> Sandbox:
    """Open the sandbox that the options of `add_sandbox` name."""
    level = options.sandbox if options.sandbox == "auto" else int(options.sandbox)
    return open_sandbox(level, trust=options.i_trust_this_code, device=options.device)


def _device(text: str) -> str:
    if not is_device_name(text):
        raise argparse.ArgumentTypeError(f"{text!r} given, cpu, cuda or cuda:N expected")
    return text
