"""Define every error that the library raises on purpose.

    CourseError
    ├── CaptureError    a program could not be turned into a graph
    ├── GraphError      a graph could not be read, drawn, written as data or rebuilt from data
    ├── FusionError     a pass was given something that it cannot work on
    ├── ScheduleError   a schedule was told to do something that it cannot do
    ├── BackendError    a backend or its machine was given something that it cannot work on
    ├── KernelError     a fused operator or a kernel cannot be compiled, or cannot run on what it was given
    ├── LaunchError     launches were captured or replayed in a way that a device refuses
    ├── ModelError      a model was configured in a way that cannot work
    ├── TrainingError   a training run was configured, fed or resumed in a way that cannot work
    ├── TimingError     something could not be measured, or the given times are invalid
    └── ProfilingError  a profile or a report was asked for in a way that cannot work

Each message says what was given, what was expected, and what to do next. A pass that meets a graph which it
should leave alone raises nothing: it reports a refusal (see `course_lib.fusion.Rejected`).
"""


class CourseError(Exception):
    """The root of all errors that this library raises on purpose."""


class CaptureError(CourseError):
    """A program could not be turned into a graph."""


class GraphError(CourseError):
    """A graph could not be read, drawn, written as data or rebuilt from data."""


class FusionError(CourseError):
    """A pass was given something that it cannot work on."""


class ScheduleError(CourseError):
    """A schedule was told to do something that it cannot do; the schedule is unchanged."""


class BackendError(CourseError):
    """A backend or its machine was given something that it cannot work on."""


class KernelError(CourseError):
    """A fused operator or a kernel cannot be compiled, or cannot run on what it was given."""


class LaunchError(CourseError, RuntimeError):
    """Launches were captured or replayed in a way that a device refuses; PyTorch raises RuntimeError there."""


class ModelError(CourseError):
    """A model was configured in a way that cannot work."""


class TrainingError(CourseError):
    """A training run was configured, fed or resumed in a way that cannot work."""


class TimingError(CourseError):
    """Something could not be measured, or the given times are invalid."""


class ProfilingError(CourseError):
    """A profile or a report was asked for in a way that cannot work."""
