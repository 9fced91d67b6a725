"""Look whether this machine has what the course needs, and say what to do about what is missing."""

from course_lib.doctor.examining import doctor
from course_lib.doctor.report import Finding, Health, Report

__all__ = ["Finding", "Health", "Report", "doctor"]
