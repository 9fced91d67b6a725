"""A small class of records with everything that a report must show, and hostile text wherever text can be."""

from autograder.host.records import (
    CheckRecord,
    CheckStatus,
    ExerciseRecord,
    ExerciseStatus,
    SandboxRecord,
    SubmissionRecord,
)

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m\u202e\ud800"
UNREAD = "The notebook could not be read: it is not JSON."
PASSED, FAILED = CheckStatus.PASSED, CheckStatus.FAILED
NAMES = ("shapes", "values", "mask", "fully masked row", "odd sizes", "dropout")


def attention_exercise(
    right: int, *, status: ExerciseStatus = ExerciseStatus.GRADED, message: str = ""
) -> ExerciseRecord:
    checks = tuple(
        CheckRecord(
            name,
            name if i < 3 else "cases you have not seen",
            i >= 3,
            PASSED if i < right else FAILED,
            [2.0, 2.0, 1.0, 2.0, 2.0, 1.0][i] if i < right else 0.0,
            [2.0, 2.0, 1.0, 2.0, 2.0, 1.0][i],
            "" if i < right else f"Scores are {i} times too small: divide by sqrt(head_size), not by head_size.",
        )
        for i, name in enumerate(NAMES)
    )
    points = sum(c.points for c in checks)
    return ExerciseRecord("01_scaled_dot_product", "callable", points, 10.0, status, message, checks)


def fusion_exercise(launches: int, points: float, *, name: str = "fused") -> ExerciseRecord:
    checks = (
        CheckRecord(
            name, "fires", False, PASSED if points else FAILED, min(points, 8.0), 8.0, "" if points else HOSTILE
        ),
        CheckRecord("look-alike", "left alone", True, PASSED if points > 8 else FAILED, max(points - 8.0, 0.0), 4.0),
        CheckRecord("speed", "measured on CUDA", False, CheckStatus.NOT_ASSESSED, 0.0, 2.0, "No CUDA device here."),
    )
    counted = {
        "launches": launches,
        "launches_minimum": 1,
        "bytes_moved": 4096.0 * launches,
        "bytes_moved_minimum": 4096.0,
    }
    return ExerciseRecord(
        "05_bias_silu_pass", "graph", points, 12.0, ExerciseStatus.GRADED, "", checks, counted, {"time_us": 41.5}
    )


def submission(student: str, *exercises: ExerciseRecord, notes: tuple[str, ...] = ()) -> SubmissionRecord:
    assignment = "01_transformer" if exercises and exercises[0].id.startswith("01") else "05_fx_rewrite"
    sandbox = SandboxRecord(2, ("memory watched, not limited",))
    return SubmissionRecord(assignment, student, "0" * 64, sandbox, exercises, notes)


def sample_class() -> list[SubmissionRecord]:
    lost = ExerciseRecord("05_bias_silu_pass", "graph", 0.0, 0.0, ExerciseStatus.GRADER_ERROR, "the sandbox is missing")
    unread = ExerciseRecord("01_scaled_dot_product", "callable", 0.0, 10.0, ExerciseStatus.NOT_FOUND, UNREAD)
    endless = attention_exercise(0, status=ExerciseStatus.TIMED_OUT, message="No answer within 20 s.")
    return [
        *(submission(f"honest_{i}", attention_exercise(6 - i % 3)) for i in range(6)),
        *(submission(f"honest_{i}", fusion_exercise(1 + i % 2, 12.0 if i % 2 == 0 else 8.0)) for i in range(6)),
        submission(HOSTILE, attention_exercise(2), notes=(HOSTILE,)),
        submission(HOSTILE, fusion_exercise(7, 0.0, name=HOSTILE)),
        submission("not_json", unread, notes=(UNREAD,)),
        submission("endless_loop", endless),
        submission("honest_6", attention_exercise(6), notes=("The answer cell was split in two; merged.",)),
        submission("honest_6", lost),
    ]
