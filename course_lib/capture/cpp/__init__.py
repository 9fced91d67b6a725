"""Run captured programs from C++, without Python: a TorchScript archive, or an AOTInductor package."""

from course_lib.capture.cpp.running import Runner, build_runner

__all__ = ["Runner", "build_runner"]
