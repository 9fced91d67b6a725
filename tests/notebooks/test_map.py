"""The map of the lessons shows every notebook, with the minutes that the notebook itself says; students get it too."""

import json
import re
from pathlib import Path

from autograder.exercises import all_exercises
from autograder.practice import progress

COURSE = Path(__file__).parents[2]
README = COURSE / "notebooks" / "README.md"
NOTEBOOKS = sorted((COURSE / "notebooks").glob("*/*.ipynb"))
CONFIG = COURSE / "scripts" / "student_lab" / "jupyter_server_config.json"


def mapped() -> dict[str, tuple[str, int]]:
    """From the name of each notebook in the map to where its line leads, and the minutes it says."""
    line = r"^\| \[(\w+)\]\(([\w/.]+)\) \|.*\| (\d+) \|$"
    return {name: (link, int(minutes)) for name, link, minutes in re.findall(line, README.read_text(), re.MULTILINE)}


def said_minutes(path: Path) -> int:
    """What the notebook says at its top."""
    title = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    (minutes,) = re.findall(r"About (\d+) minutes\.", title)
    return int(minutes)


def test_every_notebook_has_its_line_in_order_with_its_own_minutes() -> None:
    expected = [(path.stem, (f"{path.stem}/{path.name}", said_minutes(path))) for path in NOTEBOOKS]
    assert list(mapped().items()) == expected, "add the line, or the minutes, to the map in notebooks/README.md"


def test_the_vocabulary_is_sorted_and_says_each_word_once() -> None:
    words = re.findall(r"^\| ([a-z ]+) \| .+ \|$", README.read_text().split("## Vocabulary")[1], re.MULTILINE)[1:]
    assert len(words) > 10
    assert words == sorted(set(words))


def test_jupyterlab_opens_on_the_first_notebook() -> None:
    url = json.loads(CONFIG.read_text())["LabApp"]["default_url"]
    first = NOTEBOOKS[0]
    assert url == f"/lab/tree/{first.parent.name}/{first.name}"


def test_progress_shows_exercises_of_every_notebook() -> None:
    shown = str(progress())
    assert all(exercise in shown for exercise in all_exercises())
    assert {path.stem[:2] for path in NOTEBOOKS} <= {exercise[:2] for exercise in all_exercises()}


def test_each_notebook_leads_to_the_next() -> None:
    last_lines = ["".join(json.loads(path.read_text(encoding="utf-8"))["cells"][-1]["source"]) for path in NOTEBOOKS]
    links = [re.findall(r"\]\(\.\./(\w+/\w+\.ipynb)\)", text) for text in last_lines]
    assert links == [*([f"{path.parent.name}/{path.name}"] for path in NOTEBOOKS[1:]), []]
