"""Measure how long something takes, compare two ways of doing it, and decide whether one is fast enough.

A time alone says little: `environment` tells on what machine it was taken, and `selfcheck` whether the timer can be
trusted there. `SimulatedDevice` and `NoisyMachine` are for learning: they know the true answer.
"""

from course_lib.timing.comparing import Comparison, compare
from course_lib.timing.decisions import Decision, Pair, Verdict, decide_speedup
from course_lib.timing.environment import Environment, environment
from course_lib.timing.measuring import time_callable
from course_lib.timing.selfchecking import SelfCheck, selfcheck
from course_lib.timing.simulated_device import Flaw, SimulatedDevice, Window
from course_lib.timing.simulated_noise import NoisyMachine
from course_lib.timing.timings import Cache, ClockName, Timing

__all__ = [
    "Cache",
    "ClockName",
    "Comparison",
    "Decision",
    "Environment",
    "Flaw",
    "NoisyMachine",
    "Pair",
    "SelfCheck",
    "SimulatedDevice",
    "Timing",
    "Verdict",
    "Window",
    "compare",
    "decide_speedup",
    "environment",
    "selfcheck",
    "time_callable",
]
