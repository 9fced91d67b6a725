"""Run the command line: `python -m autograder`."""

import sys

from autograder.classroom.start import main

if __name__ == "__main__":
    sys.exit(main())
