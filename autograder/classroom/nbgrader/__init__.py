"""Plug the grader into nbgrader's cycle: release, collect, autograde, feedback, export; `hooks` lists every hook."""
