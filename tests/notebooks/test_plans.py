"""The plans in `docs/plans` name notebooks and sections that exist, with minutes that agree and add up."""

import json
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

COURSE = Path(__file__).parents[2]
PLANS = COURSE / "docs" / "plans"
NOTEBOOKS = sorted((COURSE / "notebooks").glob("*/*.ipynb"))
ALL = "all"
# Of each plan: what its first column counts, how many of these there may be, and the minutes of work in each.
LIMITS = {"semester": ("week", 16, 240), "workshop": ("day", 2, 360), "session": ("hour", 2, 60)}


@dataclass(frozen=True)
class Row:
    """One line of a plan."""

    slot: int
    notebook: str
    link: str
    sections: str
    minutes: int


@cache
def text_of(plan: str) -> str:
    return (PLANS / f"{plan}.md").read_text(encoding="utf-8")


def rows_of(text: str, slot: str) -> list[Row]:
    """The lines of the table below its heading, all of them: one that does not fit is an error."""
    heading = f"| {slot} | notebook | sections | minutes |\n|---|---|---|---|\n"
    assert heading in text, f"no table with the heading {heading!r}"
    lines = text.split(heading)[1].split("\n\n")[0].splitlines()
    found = [re.fullmatch(r"\| (\d+) \| \[(\w+)\]\((.+)\) \| (all|\d+(?:–\d+)?) \| (\d+) \|", line) for line in lines]
    assert None not in found, f"not understood: {[line for line, match in zip(lines, found, strict=True) if not match]}"
    return [Row(int(one[1]), one[2], one[3], one[4], int(one[5])) for one in found if one]


def rows(plan: str) -> list[Row]:
    return rows_of(text_of(plan), LIMITS[plan][0])


@cache
def facts(notebook: str) -> tuple[int, int]:
    """The minutes that a notebook says at its top, and the number of its sections."""
    path = COURSE / "notebooks" / notebook / f"{notebook}.ipynb"
    texts = ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    (minutes,) = re.findall(r"About (\d+) minutes\.", texts[0])
    numbers = [int(number) for text in texts for number in re.findall(r"^## (\d+)\. ", text, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1)), f"{notebook} has the sections {numbers}"
    return int(minutes), len(numbers)


def span(row: Row) -> tuple[int, int]:
    """The first and the last section of a row."""
    if row.sections == ALL:
        return 1, facts(row.notebook)[1]
    first, _, last = row.sections.partition("–")
    return int(first), int(last or first)


def complaints(plan: str, found: list[Row]) -> list[str]:
    """What does not agree with the notebooks, or does not fit."""
    _, most, limit = LIMITS[plan]
    said = []
    slots = [row.slot for row in found]
    if slots != sorted(slots) or set(slots) != set(range(1, len(set(slots)) + 1)) or len(set(slots)) > most:
        said.append(f"the first column counts {slots}; it has to count from 1 to at most {most}")
    for slot in dict.fromkeys(slots):
        total = sum(row.minutes for row in found if row.slot == slot)
        said += [f"{slot} has {total} minutes of at most {limit}"] if total > limit else []
    for notebook in dict.fromkeys(row.notebook for row in found):
        said += of_notebook(notebook, [row for row in found if row.notebook == notebook])
    return said


def of_notebook(notebook: str, parts: list[Row]) -> list[str]:
    """What does not agree with one notebook."""
    minutes, sections = facts(notebook)
    spans = [span(part) for part in parts]
    said = [f"{notebook} has no sections {part.sections}" for part in parts if not 1 <= span(part)[0] <= span(part)[1]]
    said += [f"{notebook} ends with section {sections}" for _, last in spans if last > sections]
    said += [f"{notebook} comes back to section {b[0]}" for a, b in pairwise(spans) if b[0] <= a[1]]
    total, taken = sum(part.minutes for part in parts), sum(last - first + 1 for first, last in spans)
    if total > minutes or (taken == sections) != (total == minutes):
        said.append(f"{notebook}: {taken} of {sections} sections in {total} of {minutes} minutes")
    return said


each_plan = pytest.mark.parametrize("plan", LIMITS)


def test_there_is_a_test_for_each_plan() -> None:
    assert {path.stem for path in PLANS.iterdir()} == set(LIMITS)


@each_plan
def test_every_notebook_that_a_plan_names_is_there_and_linked(plan: str) -> None:
    for row in rows(plan):
        assert (PLANS / row.link).resolve() == COURSE / "notebooks" / row.notebook / f"{row.notebook}.ipynb"
        assert (PLANS / row.link).exists()


@each_plan
def test_minutes_agree_with_the_notebooks_and_fit(plan: str) -> None:
    assert complaints(plan, rows(plan)) == []


@each_plan
def test_the_total_is_the_sum(plan: str) -> None:
    (said,) = re.findall(r"^Total: ([\d,]+) minutes\.", text_of(plan), re.MULTILINE)
    assert int(said.replace(",", "")) == sum(row.minutes for row in rows(plan))


def test_the_semester_has_every_notebook_in_order_and_whole() -> None:
    planned = rows("semester")
    assert list(dict.fromkeys(row.notebook for row in planned)) == [path.stem for path in NOTEBOOKS], (
        "add a row for the notebook to docs/plans/semester.md, with the minutes of its title"
    )
    for path in NOTEBOOKS:
        parts = [row for row in planned if row.notebook == path.stem]
        assert sum(part.minutes for part in parts) == facts(path.stem)[0]


def test_both_readmes_lead_to_the_plans() -> None:
    ours = (COURSE / "README.md").read_text(encoding="utf-8")
    assert all(f"(docs/plans/{plan}.md)" in ours for plan in LIMITS)
    assert "docs/plans" in (COURSE / "notebooks" / "README.md").read_text(encoding="utf-8")


WRONG = {  # a row in the place of the session's second, and the complaint
    "a section that is not there": ("04_fx_capture", "4–11", 30, "ends with section 10"),
    "backwards": ("04_fx_capture", "4–2", 30, "has no sections 4–2"),
    "too long": ("04_fx_capture", "1–4", 40, "1 has 70 minutes of at most 60"),
    "all in less": ("04_fx_capture", "all", 30, "10 of 10 sections in 30 of 100 minutes"),
    "twice": ("00_start_here", "5", 30, "comes back to section 5"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_row_is_seen(case: str) -> None:
    notebook, sections, minutes, says = WRONG[case]
    found = rows("session")
    found[1] = Row(1, notebook, "", sections, minutes)
    assert any(says in said for said in complaints("session", found))


def test_slots_that_are_left_out_or_too_many_are_seen() -> None:
    part = rows("session")[0]
    for slots in ((1, 3), (2,), (1, 2, 3)):
        found = [Row(slot, part.notebook, "", part.sections, part.minutes) for slot in slots]
        assert any("count" in said for said in complaints("session", found))


def test_a_row_of_another_form_is_seen() -> None:
    good = text_of("session")
    with pytest.raises(AssertionError, match="not understood"):
        rows_of(good.replace("| 1–4 | 30 |", "| 1-4 | thirty |"), "hour")
    with pytest.raises(AssertionError, match="no table"):
        rows_of(good, "week")
