"""The parts of the library that run the passes of the course: exercises on passes or schedules leave them out."""

PASSES = tuple(
    f"course_lib.fusion.{part}"
    for part in ("__init__", "composites", "fuse", "machine_written", "mistaken", "passes", "registry")
)
"""The passes, and what runs or names them.

What schedules need of `course_lib.fusion` stays: without its `__init__`, it is a folder of modules that Python imports
by their full names.
"""
