"""TorchScript and C++: programs that run what was saved, without Python, and passes of ours over its graphs."""

from course_lib.capture.cpp.extensions import Passes, Runner, build_passes, build_runner

__all__ = ["Passes", "Runner", "build_passes", "build_runner"]
