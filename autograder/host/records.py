"""The grader's records: one for each submission, as frozen data that reads and writes JSON.

    >>> record = SubmissionRecord.from_json(line)
    >>> record.points, record.max_points
    (7.5, 12.0)

The judge returns only records. Reports, the gradebook and the journal are made from records, never the reverse.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Self

SCHEMA = "fusion-course/submission/1"
GRADER_VERSION = "0.1.0"


class CheckStatus(StrEnum):
    """How one check ended."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"  # the student's code raised an exception or ended inside this check
    NOT_ASSESSED = "not_assessed"  # left out of points and maximum


class ExerciseStatus(StrEnum):
    """How one exercise ended. Only `GRADER_ERROR` is the grader's fault, and it never costs points."""

    GRADED = "graded"
    STUDENT_ERROR = "student_error"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED = "killed"
    MALFORMED_ANSWER = "malformed_answer"
    NOT_FOUND = "not_found"
    UNDECIDED = "undecided"  # a person must say which text is the answer
    GRADER_ERROR = "grader_error"


WITHOUT_MARK = frozenset({ExerciseStatus.UNDECIDED, ExerciseStatus.GRADER_ERROR})
"""How an exercise ends that was not graded: it has neither points nor a maximum."""

STOPPED = frozenset({ExerciseStatus.TIMED_OUT, ExerciseStatus.OUT_OF_MEMORY, ExerciseStatus.KILLED})
"""How an answer ends that is stopped. Others beside it may be the cause: see `ExerciseRecord.was_disturbed`."""


class EarnedBy(StrEnum):
    """How the points for speed were decided."""

    COUNTED = "counted"  # by counted cost: this device does not measure, or the measured ratio decided nothing
    MEASURED = "measured"  # by the measured ratio


@dataclass(frozen=True)
class CheckRecord:
    """One check of one exercise: its points and what was earned."""

    name: str
    category: str  # students see nothing else of a hidden check
    hidden: bool
    status: CheckStatus
    points: float
    max_points: float
    message: str = ""  # one or two sentences to the student; empty when passed
    by: EarnedBy | None = None  # None unless its points are for speed

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", CheckStatus(self.status))
        object.__setattr__(self, "by", self.by and EarnedBy(self.by))
        if not 0 <= self.points <= self.max_points:
            raise ValueError(f"check {self.name!r}: {self.points} points outside 0..{self.max_points}")


class Badge(StrEnum):
    """A badge for the bandwidth of a kernel, by its share of the bandwidth of a copy."""

    BRONZE = "bronze"
    SILVER = "silver"
    GOLD = "gold"


@dataclass(frozen=True)
class KernelRecord:
    """The bandwidth of an answer's compiled kernels, measured on a GPU; a badge is no points."""

    assessed: bool
    reason: str  # one or two sentences for the student
    badge: Badge | None = None
    share: float = 0.0  # of a copy's bandwidth; 0 if it was not measured
    share_low: float = 0.0  # interval of the true median share, with 95 % confidence
    share_high: float = 0.0
    bytes_moved: int = 0  # inputs once and outputs once, counted by the host
    answer_us: float = 0.0  # of one call
    copy_us: float = 0.0  # of a copy that moves as many bytes
    flags: tuple[str, ...] = ()  # for the person who reviews it

    def __post_init__(self) -> None:
        object.__setattr__(self, "badge", self.badge and Badge(self.badge))
        object.__setattr__(self, "flags", tuple(self.flags))
        if self.badge and (self.flags or not self.assessed):
            raise ValueError(f"a {self.badge} badge that was not assessed, or is to be reviewed: {self.reason}")


class SpeedVerdict(StrEnum):
    """The result of the timing; the first four values as in `course_lib.timing`."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    ENVIRONMENT = "environment"
    SHOWN = "shown"  # measured where counted cost earns the points


@dataclass(frozen=True)
class CountedCost:
    """The counted cost of one timed call."""

    launches: int
    bytes_moved: int


@dataclass(frozen=True)
class SpeedRecord:
    """An answer's speed by the host's clock, against the exercise's baseline; a ratio above 1 is faster."""

    verdict: SpeedVerdict
    reason: str  # one sentence for the student
    ratio: float
    ratio_low: float  # interval of the true median ratio, with 95 % confidence
    ratio_high: float
    pairs: int
    attempts: int  # each in new processes
    answer_us: float  # of one call
    baseline_us: float
    passing: float  # the ratio that is required; 0 if the ratio earns nothing on any machine
    full: float  # the ratio that earns all points, or 0
    ideal: float  # the ratio that the fewest bytes allow
    device: str
    flags: tuple[str, ...] = ()  # for the person who reviews it
    answer_cost: CountedCost | None = None  # None if not counted
    baseline_cost: CountedCost | None = None

    def __post_init__(self) -> None:
        for name in ("answer_cost", "baseline_cost"):
            if isinstance(cost := getattr(self, name), Mapping):
                object.__setattr__(self, name, CountedCost(**cost))
        object.__setattr__(self, "verdict", SpeedVerdict(self.verdict))
        object.__setattr__(self, "flags", tuple(self.flags))


@dataclass(frozen=True)
class BonusRecord:
    """A bonus for measured speed. It stands beside the points: no maximum and no mark contains it."""

    points: float
    max_points: float
    assessed: bool
    reason: str  # one or two sentences for the student
    first_step_s: float = 0.0  # until the first step was finished, building and compiling included; 0 if none was

    def __post_init__(self) -> None:
        if not 0 <= self.points <= (self.max_points if self.assessed else 0):
            raise ValueError(f"a bonus of {self.points}, assessed: {self.assessed}, outside 0..{self.max_points}")


@dataclass(frozen=True)
class CopyRecord:
    """A function of an answer that copies a library's; a person looks at it, and it costs no points."""

    function: str  # its name in the answer
    original: str  # file and name of the other one
    text: str
    original_text: str


@dataclass(frozen=True)
class ExerciseRecord:
    """One exercise of one submission.

    `counted` and `measured` map a quantity with its unit in the name to a number, e.g. `{"launches": 1,
    "launches_minimum": 1}`.
    """

    id: str
    kind: str
    points: float
    max_points: float  # of the checks that were assessed
    status: ExerciseStatus
    message: str = ""  # why the status is not "graded"
    checks: tuple[CheckRecord, ...] = ()
    counted: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)
    speed: SpeedRecord | None = None  # None if not measured
    bonus: BonusRecord | None = None  # None if the exercise has none
    cap: str = ""  # why `points` may be less than the sum of the checks, for the student; empty if nothing limits them
    badge: KernelRecord | None = None  # None if the exercise has no badge
    copies: tuple[CopyRecord, ...] = ()
    undisturbed: bool = False  # timed out, though it had hardly waited for a processor
    version: Mapping[str, str] = field(default_factory=dict)  # what the marks depend on; empty in older records
    counts: bool = True  # False in a report of a course that leaves the exercise out of its marks

    @property
    def was_disturbed(self) -> bool:
        """Tell whether the answer was stopped and others may be the cause, so that a batch grades it again alone."""
        return self.status in STOPPED and not self.undisturbed

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", ExerciseStatus(self.status))
        if isinstance(self.speed, Mapping):
            object.__setattr__(self, "speed", SpeedRecord(**self.speed))
        if isinstance(self.bonus, Mapping):
            object.__setattr__(self, "bonus", BonusRecord(**self.bonus))
        checks = tuple(c if isinstance(c, CheckRecord) else CheckRecord(**c) for c in self.checks)
        object.__setattr__(self, "checks", checks)
        copies = tuple(c if isinstance(c, CopyRecord) else CopyRecord(**c) for c in self.copies)
        object.__setattr__(self, "copies", copies)
        if isinstance(self.badge, Mapping):
            object.__setattr__(self, "badge", KernelRecord(**self.badge))
        if not 0 <= self.points <= self.max_points + 1e-9:
            raise ValueError(f"exercise {self.id!r}: {self.points} points outside 0..{self.max_points}")


@dataclass(frozen=True)
class SandboxRecord:
    """The isolation in which the student's code ran; see `autograder sandbox`."""

    level: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SubmissionRecord:
    """The grader's result for one submitted notebook."""

    assignment: str
    student: str
    submission_sha256: str
    sandbox: SandboxRecord
    exercises: tuple[ExerciseRecord, ...]
    notes: tuple[str, ...] = ()  # repairs of the notebook, and points for a person to review
    grader_version: str = GRADER_VERSION
    schema: str = SCHEMA

    @property
    def points(self) -> float:
        """Return the points earned, over all exercises."""
        return round(sum(e.points for e in self.exercises if e.counts), 6)

    @property
    def max_points(self) -> float:
        """Return the points that could be earned in the assessed checks."""
        return round(sum(e.max_points for e in self.exercises if e.counts), 6)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return the record's identity: a second record with the same key is the same grading."""
        versions = json.dumps([self.grader_version, *(dict(e.version) for e in self.exercises)], sort_keys=True)
        return (self.assignment, self.student, self.submission_sha256, hashlib.sha256(versions.encode()).hexdigest())

    def to_dict(self) -> dict[str, object]:
        """Return the record as plain data, points included."""
        return {**asdict(self), "points": self.points, "max_points": self.max_points}

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read one line of JSON that `to_json` wrote; raise `ValueError` for another schema."""
        data = json.loads(text)
        if data.get("schema") != SCHEMA:
            raise ValueError(f"a record of schema {data.get('schema')!r}, but this grader reads {SCHEMA!r}")
        data.pop("points"), data.pop("max_points")
        data["sandbox"] = SandboxRecord(data["sandbox"]["level"], tuple(data["sandbox"]["notes"]))
        data["exercises"] = tuple(ExerciseRecord(**e) for e in data["exercises"])
        data["notes"] = tuple(data["notes"])
        return cls(**data)
