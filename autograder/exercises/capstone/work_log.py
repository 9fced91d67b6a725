"""Exercise 17.5: a work log. The host checks its form; a person reads what it says, by the rubric in the notebook."""

from collections.abc import Mapping, Sequence
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import shortened
from autograder.host.kinds.value import ValueAnswer

UNITS = {
    "kernels": "launches",
    "launches": "launches",
    "bytes_moved": "bytes",
    "saved_bytes": "bytes",
    "step_time": "us",
}
"""What an entry may measure, with the unit: the counters of `17_optimise_step`, and the time of a step."""
COUNTED = {
    "kernels": (28, 29, 58),
    "launches": (67, 68, 135),
    "bytes_moved": (831_888, 3_594_896, 1_692_432, 361_800, 580_944, 6_300_160, 6_562_816, 15_354_896, 15_617_552),
    "saved_bytes": (78_336, 382_464, 160_768, 28_224, 52_992, 1_509_376),
}
"""What is counted before any change: of the notebook's layer and encoder, and of the models of `17_optimise_step`."""
TEXTS = ("evidence", "hypothesis", "change")
MEASURED = ("counter", "unit", "before", "after")
VERDICTS = ("kept", "dropped")
LEAST_ENTRIES, MOST_ENTRIES = 3, 40
LEAST_THREATS, MOST_THREATS = 2, 20
LEAST_WORDS, MOST_CHARACTERS = 5, 1000
LARGEST = 1e15  # of a number that is shown in a message


def entries_of(answer: ValueAnswer) -> Sequence[Mapping[str, Any]]:
    """Return the entries of the log.

    Raises `CheckFailedError` if it has no list of dicts, too few or too many, or none that starts as counted.
    """
    entries = _items(answer, "entries", LEAST_ENTRIES, MOST_ENTRIES)
    _require_counted_start(entries)
    return entries


def _require_counted_start(entries: Sequence[object]) -> None:
    """Require that the first `before` of a counter is that of an unchanged layer: a log of nothing starts anywhere."""
    starts: dict[str, object] = {}
    for entry in entries:
        found = entry.get("measurement") if isinstance(entry, dict) else None
        if isinstance(found, dict) and isinstance(found.get("counter"), str):
            starts.setdefault(found["counter"], found.get("before"))
    if not any(starts.get(counter) in numbers for counter, numbers in COUNTED.items()):
        kernels, launches = COUNTED["kernels"][1], COUNTED["launches"][1]
        raise CheckFailedError(
            f"No counter starts with what is counted before any change, such as {kernels} kernels or {launches:,} "
            "launches. The report of `17_optimise_step` has each counter of the unchanged layer in brackets, after "
            "`before`."
        )


def _items(answer: ValueAnswer, key: str, least: int, most: int) -> Sequence[Mapping[str, Any]]:
    log = answer.ask({}, key)
    found: Any = log.get(key) if isinstance(log, dict) else None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise CheckFailedError(f"The log has {key} {shortened(found, 80)}; expected a list of dicts under {key!r}.")
    if not least <= len(found) <= most:
        raise CheckFailedError(f"The log has {len(found)} {key}; expected {least} to {most}.")
    return found


def _require_texts(items: Sequence[Mapping[str, Any]], key: str, parts: Sequence[str]) -> None:
    """Require each of these parts in each item, as a text of its own."""
    seen: dict[str, str] = {}
    for number, item in enumerate(items):
        for part in parts:
            where, text = f"{key}[{number}][{part!r}]", item.get(part)
            if not isinstance(text, str) or len(text) > MOST_CHARACTERS or len(text.split()) < LEAST_WORDS:
                raise CheckFailedError(
                    f"{where} is {shortened(text, 80)}; expected a text of at least {LEAST_WORDS} words and at most "
                    f"{MOST_CHARACTERS:,} characters."
                )
            if text in seen:
                raise CheckFailedError(f"{where} is the text of {seen[text]}. Write what is true of this one alone.")
            seen[text] = where


def has_all_parts(answer: ValueAnswer, draw: Draw) -> None:
    """Check that each entry says evidence, hypothesis and change, in words of its own."""
    _require_texts(entries_of(answer), "entries", TEXTS)


def has_threats(answer: ValueAnswer, draw: Draw) -> None:
    """Check that the log names threats to validity, and what was done about each."""
    threats = _items(answer, "threats", LEAST_THREATS, MOST_THREATS)
    log = answer.ask({}, "entries")
    entries = log.get("entries") if isinstance(log, dict) else None
    _require_counted_start(entries[:MOST_ENTRIES] if isinstance(entries, list) else ())
    _require_texts(threats, "threats", ("threat", "answer"))


def measured(entries: Sequence[Mapping[str, Any]], number: int) -> tuple[str, float, float]:
    """Return counter, before and after of an entry; raises `CheckFailedError` if one of them is missing or wrong."""
    where, found = f"entries[{number}]['measurement']", entries[number].get("measurement")
    if not isinstance(found, dict) or not set(MEASURED) <= set(found):
        raise CheckFailedError(f"{where} is {shortened(found, 80)}; expected a dict with {', '.join(MEASURED)}.")
    counter, before, after = found["counter"], found["before"], found["after"]
    if not isinstance(counter, str) or counter not in UNITS:
        raise CheckFailedError(f"{where}['counter'] is {shortened(counter, 80)}; expected one of {', '.join(UNITS)}.")
    for name, value in (("before", before), ("after", after)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
            raise CheckFailedError(
                f"{where}[{name!r}] is {shortened(value, 80)}; expected the number that you measured, not a share, "
                "and without its unit."
            )
    return counter, before, after


def has_measurements(answer: ValueAnswer, draw: Draw) -> None:
    """Check that each entry measures something known, in its unit, before and after."""
    entries = entries_of(answer)
    for number, entry in enumerate(entries):
        counter, _, _ = measured(entries, number)
        unit = entry["measurement"]["unit"]
        if unit != UNITS[counter]:
            raise CheckFailedError(
                f"entries[{number}]: the unit of {counter} is {shortened(unit, 80)}; expected {UNITS[counter]!r}."
            )


def verdict_of(entries: Sequence[Mapping[str, Any]], number: int) -> str:
    """Return the verdict of an entry; raises `CheckFailedError` for another word."""
    found = entries[number].get("verdict")
    if not isinstance(found, str) or found not in VERDICTS:
        raise CheckFailedError(
            f"entries[{number}]['verdict'] is {shortened(found, 80)}; expected {' or '.join(map(repr, VERDICTS))}."
        )
    return found


def has_both_verdicts(answer: ValueAnswer, draw: Draw) -> None:
    """Check that the log shows a dead end as well as a change that was kept."""
    entries = entries_of(answer)
    found = {verdict_of(entries, number) for number in range(len(entries))}
    if "dropped" not in found:
        raise CheckFailedError("No entry is 'dropped'. A log that shows no dead end leaves out what you learnt there.")
    if "kept" not in found:
        raise CheckFailedError("No entry is 'kept'. Log the change that made the step cheaper, too.")


def follows(answer: ValueAnswer, draw: Draw) -> None:
    """Check that each entry starts where the kept ones before it ended, and that a kept one made its counter less."""
    entries = entries_of(answer)
    state: dict[str, float] = {}
    for number in range(len(entries)):
        (counter, before, after), verdict = measured(entries, number), verdict_of(entries, number)
        if before != state.setdefault(counter, before):
            raise CheckFailedError(
                f"entries[{number}] starts with {counter} {before:,}; the entries before it leave {state[counter]:,}. "
                "A dropped change is undone, and the next one starts from what was kept."
            )
        if verdict == "kept":
            if after >= before:
                raise CheckFailedError(
                    f"entries[{number}] is kept, and {counter} went from {before:,} to {after:,}. Measure what the "
                    "change makes less, or call it 'dropped'."
                )
            state[counter] = after


EXERCISE = Exercise(
    title="Keep a work log",
    kind=Kind.VALUE,
    entry_point="work_log",
    points=6,
    by_hand=24,
    wall_s=20,
    hints=(
        "Begin with the reports of `17_optimise_step` that you have seen: each change that you tried is an entry.",
        "An entry has five parts: three texts, a measurement, a verdict. The counters are in the report of the check: "
        "what each was before, and what it is now.",
        'An entry is {"evidence": ..., "hypothesis": ..., "change": ..., "measurement": {"counter": "kernels", '
        '"unit": "launches", "before": ..., "after": ...}, "verdict": "dropped"}.',
    ),
    checks=(
        Check("each entry has evidence, hypothesis and change", "entries", 1.5, has_all_parts),
        Check("each measurement has a counter, its unit, and two numbers", "measurements", 1, has_measurements),
        Check("threats to validity, each with an answer", "threats", 1, has_threats),
    ),
)
