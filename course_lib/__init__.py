"""What the notebooks import: models to capture, graphs to read, passes that fuse, operators to fuse onto.

The packages are imported one by one (``from course_lib.graph import table``), so that each costs only what
it needs.
"""
