"""What is optional stands last in a notebook, in sections named `Optional second pass`, with its minutes at the top."""

import json
import math
import re
from functools import cache
from pathlib import Path

import pytest

COURSE = Path(__file__).parents[2]
LATER = sorted((COURSE / "notebooks").glob("1[0-7]_*/*.ipynb"))
MAX_CELLS = 80
WORDS_A_MINUTE = 120
SECONDS_A_LINE = 4  # of code that is read
MINUTES_A_PREDICTION = 1
STEP_MINUTES = 5  # to which minutes are rounded up
SECOND_PASS = re.compile(r"(\d+\. )?Optional second pass: \S")

each_notebook = pytest.mark.parametrize("path", LATER, ids=lambda path: path.stem)


@cache
def sections(path: Path) -> dict[str, list[tuple[str, str]]]:
    """The kinds and texts of the cells below each heading of the second level; a cell's text may belong to two."""
    found: dict[str, list[tuple[str, str]]] = {"": []}
    heading = ""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        for part in re.split(r"^(?=## )", text, flags=re.MULTILINE) if cell["cell_type"] == "markdown" else [text]:
            if cell["cell_type"] == "markdown" and part.startswith("## "):
                heading = part.splitlines()[0].removeprefix("## ")
                found[heading] = []
            found[heading].append((cell["cell_type"], part))
    return found


def second_pass(path: Path) -> list[str]:
    return [heading for heading in sections(path) if SECOND_PASS.match(heading)]


def said(path: Path, pattern: str) -> int:
    """The number that the title cell says."""
    (number,) = re.findall(pattern, " ".join(sections(path)[""][0][1].split()))
    return int(number)


def optional_minutes(path: Path) -> int:
    return said(path, r"The optional \*second pass\* takes (\d+) minutes\.")


def estimate_minutes(path: Path) -> float:
    """The minutes that it takes to read the second pass."""
    cells = [cell for heading in second_pass(path) for cell in sections(path)[heading]]
    words = sum(len(re.findall(r"[^\s|]*\w[^\s|]*", text)) for kind, text in cells if kind == "markdown")
    lines = sum(len(list(filter(str.strip, text.splitlines()))) for kind, text in cells if kind == "code")
    predictions = sum(len(re.findall(r"^predict\(", text, re.MULTILINE)) for kind, text in cells if kind == "code")
    return words / WORDS_A_MINUTE + lines * SECONDS_A_LINE / 60 + predictions * MINUTES_A_PREDICTION


def test_there_are_eight_notebooks_to_check() -> None:
    assert [path.stem[:2] for path in LATER] == [str(number) for number in range(10, 18)]


@each_notebook
def test_a_notebook_has_at_most_eighty_cells(path: Path) -> None:
    assert len(json.loads(path.read_text(encoding="utf-8"))["cells"]) <= MAX_CELLS


@each_notebook
def test_only_references_and_summary_follow_a_second_pass(path: Path) -> None:
    headings = list(sections(path))
    optional = second_pass(path)
    assert optional
    assert headings[headings.index(optional[0]) :] == [*optional, "References", "Summary"]


@each_notebook
def test_no_answer_is_asked_for_in_a_second_pass(path: Path) -> None:
    texts = [text for heading in second_pass(path) for _, text in sections(path)[heading]]
    assert not [text for text in texts if "BEGIN SOLUTION" in text or "import check" in text]


@each_notebook
def test_every_section_without_an_exercise_at_the_end_is_a_second_pass(path: Path) -> None:
    headings = list(sections(path))
    last = max(number for number, heading in enumerate(headings) if heading.startswith("Exercise: "))
    assert headings[last + 1 :] == [*second_pass(path), "References", "Summary"]


@each_notebook
def test_the_title_says_the_minutes_of_the_second_pass(path: Path) -> None:
    assert optional_minutes(path) == STEP_MINUTES * math.ceil(estimate_minutes(path) / STEP_MINUTES)
    rest = said(path, r"About (\d+) minutes\.") - said(path, r"exercises take (\d+) of them")
    assert optional_minutes(path) < rest


def cells_of_second_passes() -> set[str]:
    found: set[str] = set()
    for path in LATER:
        optional = False
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            headings = re.findall(r"^## (.*)$", "".join(cell["source"]), re.MULTILINE)
            if cell["cell_type"] == "markdown" and headings:
                optional = bool(SECOND_PASS.match(headings[-1]))
            found |= {f"{path.stem}#{cell['id']}"} if optional else set()
    return found


def test_only_the_topic_that_cannot_run_without_a_gpu_is_met_in_a_second_pass_alone() -> None:
    rows = re.findall(r"^\| \d+ \| ([^|]+) \| ([^|]+) \|", (COURSE / "notebooks/topics.md").read_text(), re.MULTILINE)
    assert len(rows) > 30
    cells = {topic: set(re.findall(r"`(\w+#[\w-]+)`", named)) for topic, named in rows}
    optional = [topic for topic, named in cells.items() if named and named <= cells_of_second_passes()]
    assert [topic.split(":")[0] for topic in optional] == ["Torch-TensorRT"]


def test_map_and_semester_say_the_sum() -> None:
    total = sum(map(optional_minutes, LATER))
    assert f"In notebooks 10 to 17 they take {total} of these minutes." in (COURSE / "notebooks/README.md").read_text()
    plan = " ".join((COURSE / "docs/plans/semester.md").read_text(encoding="utf-8").split())
    whole, without = re.findall(
        r"Total: ([\d,]+) minutes\. Sections named \*second pass\* are optional; without them it is ([\d,]+) minutes\.",
        plan,
    )[0]
    assert int(whole.replace(",", "")) - int(without.replace(",", "")) == total
