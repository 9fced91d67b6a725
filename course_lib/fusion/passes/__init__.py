"""The passes, one a file; `course_lib.fusion.registry` lists them in the order in which they run."""
