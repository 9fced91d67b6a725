"""C++ bodies of the fused operators for a CPU: one pass over memory, in vector instructions.

They are compiled once for an installation, see `course_lib.kernels.cpu.build`, and loaded when they are first called.
"""
