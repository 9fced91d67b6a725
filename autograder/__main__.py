"""`python -m autograder` is the command line of the host."""

import sys

from autograder.classroom.cli import main

if __name__ == "__main__":
    sys.exit(main())
