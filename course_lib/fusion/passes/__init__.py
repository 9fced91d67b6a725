"""The passes, one in each file; `course_lib.fusion.registry` lists them in the order in which they run."""
