"""Check that two programs compute the same: run both, observe everything that could differ, and compare."""

from course_lib.verify.equivalence import verify
from course_lib.verify.findings import Finding, Report

__all__ = ["Finding", "Report", "verify"]
