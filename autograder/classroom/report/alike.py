"""What the class report says of two students with nearly the same answers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AlikeAnswers:
    """Two answers to one exercise."""

    exercise: str
    share: float  # of tokens in common, from 0 to 1
    texts: tuple[str, str]


@dataclass(frozen=True)
class AlikePair:
    """Two students and their answers that are alike."""

    students: tuple[str, str]
    answers: tuple[AlikeAnswers, ...]
