"""See where a program spends its time and memory, and report what one inference of a model costs."""

from course_lib.profiling.inference_report import inference_report
from course_lib.profiling.operator_profile import annotate, count_flops, profile_operators
from course_lib.profiling.plots import picture
from course_lib.profiling.speed_by_size import speed_by_size

__all__ = ["annotate", "count_flops", "inference_report", "picture", "profile_operators", "speed_by_size"]
