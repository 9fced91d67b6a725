"""Check that two programs compute the same: run both, observe everything that could differ, and compare."""

from course_lib.verify.equivalence import Finding, Report, verify

__all__ = ["Finding", "Report", "verify"]
