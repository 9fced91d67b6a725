"""See which program of a Triton kernel reads and writes which element, while Triton's interpreter runs it."""

from course_lib.kernel_programs.absent_gpu import GpuCode, compile_for_absent_gpu
from course_lib.kernel_programs.access_log import AccessLog
from course_lib.kernel_programs.access_map import AccessMap
from course_lib.kernel_programs.accesses import Access, Stray, Traffic
from course_lib.kernel_programs.interpreter import interpreter_of_triton, patch_language_for_good, use_interpreter
from course_lib.kernel_programs.live_blocks import LiveBlocks
from course_lib.kernel_programs.races import Conflict
from course_lib.kernel_programs.trial import try_launcher

__all__ = [
    "Access",
    "AccessLog",
    "AccessMap",
    "Conflict",
    "GpuCode",
    "LiveBlocks",
    "Stray",
    "Traffic",
    "compile_for_absent_gpu",
    "interpreter_of_triton",
    "patch_language_for_good",
    "try_launcher",
    "use_interpreter",
]
