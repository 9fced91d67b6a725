"""Run the command line: `python -m autograder`."""

import sys

from autograder.classroom.cli import main

if __name__ == "__main__":
    sys.exit(main())
