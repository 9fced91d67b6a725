"""The kinds of answers, one a file; the same names as in `autograder.worker.kinds`."""
