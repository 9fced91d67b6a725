"""Some of the exercises, others in each run, for tests whose whole is a benchmark that takes long."""

from __future__ import annotations

import os
import random

from autograder.host.exercises import all_exercises

# Processes that share the tests of one run out have to draw the same.
DRAWN = sorted(random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID")).sample(all_exercises(), 12))
