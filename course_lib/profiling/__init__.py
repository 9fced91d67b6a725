"""See where a program spends its time and memory, and report what one inference of a model costs."""

from course_lib.profiling.annotating import annotate
from course_lib.profiling.flops import Flops, count_flops
from course_lib.profiling.inference import inference_report
from course_lib.profiling.memory import MemoryUse
from course_lib.profiling.operators import OperatorProfile, OperatorUse, profile_operators
from course_lib.profiling.plotting import Plot, picture
from course_lib.profiling.reports import BatchCost, InferenceReport

__all__ = [
    "BatchCost",
    "Flops",
    "InferenceReport",
    "MemoryUse",
    "OperatorProfile",
    "OperatorUse",
    "Plot",
    "annotate",
    "count_flops",
    "inference_report",
    "picture",
    "profile_operators",
]
