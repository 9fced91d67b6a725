"""Run the command line: `autograder`, or `python -m autograder`."""

import sys

from autograder.classroom.supervisor import supervised


def main() -> int:
    """Run one command and return its exit status; a batch, which runs longest, in a process that is watched."""
    return supervised("autograder", _command) if sys.argv[1:2] == ["batch"] else _command()


def _command() -> int:
    from autograder.classroom.cli import main as command  # torch, which the watching process does without

    return command()


if __name__ == "__main__":
    sys.exit(main())
