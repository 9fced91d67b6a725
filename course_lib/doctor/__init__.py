"""Look whether this machine has what the course needs, and say what to do about what is missing."""

from course_lib.doctor.examination import Finding, Health, Report, doctor

__all__ = ["Finding", "Health", "Report", "doctor"]
