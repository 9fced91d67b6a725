"""Run saved programs from C++ without Python, and run passes written in C++ over TorchScript graphs."""

from course_lib.capture.cpp.extensions import Passes, Runner, build_passes, build_runner

__all__ = ["Passes", "Runner", "build_passes", "build_runner"]
