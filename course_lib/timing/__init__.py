"""Measure how long something takes, compare two ways of doing it, and decide whether one is fast enough.

A time has no meaning without its conditions: `environment` describes the machine, and `selfcheck` tests the timer.
`SimulatedDevice` and `NoisyMachine` are for learning, because their true times are known.
"""

from course_lib.timing.decisions import Verdict, decide_speedup
from course_lib.timing.environment import environment
from course_lib.timing.measurement import time_callable
from course_lib.timing.paired_runs import compare
from course_lib.timing.selfcheck import selfcheck
from course_lib.timing.simulation import Flaw, NoisyMachine, SimulatedDevice

__all__ = [
    "Flaw",
    "NoisyMachine",
    "SimulatedDevice",
    "Verdict",
    "compare",
    "decide_speedup",
    "environment",
    "selfcheck",
    "time_callable",
]
