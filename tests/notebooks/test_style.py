"""The rules that hold for every source notebook, checked on the file as it is committed."""

import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from autograder.exercises import find

COURSE = Path(__file__).parents[2]
NOTEBOOKS = sorted((COURSE / "notebooks").glob("*/*.ipynb"))
MAX_WORDS = 120
MAX_TASK_WORDS = 200  # with a table and an example
MAX_CODE_LINES = 12
MAX_COLUMNS = 116  # of code in a window of 1,366 pixels
MAX_SOLUTION_LINES = 25
USUAL_WORDS = 40
LONGER_SOLUTIONS = {  # one pass with its guards; a part of it would teach an unsafe pass
    "05_bias_silu_pass": 40,
    "05_fold_affine": 31,
    "05_scale_dropout_rms_norm_pass": 60,
    "17_work_log": 40,  # a log: a line for each part of an entry, of which none is code
    "13_tiled_attention": 27,  # forward and backward walk over the same tiles
    "12_block_end_forward": 32,  # kernel and launcher are one text
    "12_block_end_backward": 32,  # as above
    "12_block_end_operator": 42,  # its two implementations, its form and its derivative
    "12_layer_norm": 84,  # forward and backward are one exercise: the second reads what the first keeps
}
ALLOWED_METADATA = {"kernelspec", "language_info"}
NBGRADER_KEYS = {"schema_version", "grade_id", "grade", "solution", "locked", "task"}

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@cache
def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in read(path)["cells"] if cell["cell_type"] == kind]


def graded(path: Path, **flags: bool) -> list[dict[str, Any]]:
    return [
        cell
        for cell in read(path)["cells"]
        if "nbgrader" in cell["metadata"]
        and all(cell["metadata"]["nbgrader"][flag] is value for flag, value in flags.items())
    ]


def words(text: str) -> int:
    return len(re.findall(r"[^\s|]*\w[^\s|]*", text))


def solution_and_rest(text: str) -> tuple[list[str], list[str]]:
    """The lines between the markers, and the others; empty lines are free."""
    inside, outside, within = [], [], False
    for line in filter(str.strip, text.splitlines()):
        if line.strip() in ("### BEGIN SOLUTION", "### END SOLUTION"):
            within = "BEGIN" in line
        else:
            (inside if within else outside).append(line)
    return inside, outside


def test_there_are_notebooks_to_check() -> None:
    assert {"01_transformer", "04_fx_capture", "05_fx_rewrite"} <= {path.stem for path in NOTEBOOKS}


@each_notebook
def test_the_folder_is_named_for_the_notebook(path: Path) -> None:
    assert path.parent.name == path.stem


@each_notebook
def test_the_format_is_4_5_and_the_metadata_says_nothing_of_a_machine(path: Path) -> None:
    notebook = read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook["metadata"]) == ALLOWED_METADATA
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert set(notebook["metadata"]["language_info"]) == {"name"}


@each_notebook
def test_nothing_that_was_run_is_stored(path: Path) -> None:
    for cell in cells(path, "code"):
        assert cell["outputs"] == [], cell["id"]
        assert cell["execution_count"] is None, cell["id"]


@each_notebook
def test_cell_ids_are_readable_and_unique(path: Path) -> None:
    ids = [cell["id"] for cell in read(path)["cells"]]
    assert len(ids) == len(set(ids))
    for name in ids:
        assert re.fullmatch(r"[a-z0-9]+([-_][a-z0-9]+)*", name), name
        assert not re.fullmatch(r"[0-9a-f]{8}", name), f"{name} looks generated: give the cell a name"


@each_notebook
def test_a_title_opens_and_headings_never_skip_a_level(path: Path) -> None:
    levels = [
        len(match.group(1))
        for cell in cells(path, "markdown")
        for match in re.finditer(r"^(#{1,6}) \S", source(cell), flags=re.MULTILINE)
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(deeper <= level + 1 for level, deeper in pairwise(levels))


@each_notebook
def test_the_title_cell_promises_says_how_long_and_what_is_assumed(path: Path) -> None:
    first = read(path)["cells"][0]
    text = source(first)
    assert text.startswith(f"# {path.stem[:2]} · ")
    assert re.search(r"^\*\*.+\.\*\*$", text, flags=re.MULTILINE), "no promise in one bold sentence"
    assert re.search(r"About \d+ minutes\. ", text)


@each_notebook
def test_the_minutes_that_the_title_gives_to_exercises_are_their_sum(path: Path) -> None:
    title, *texts = map(source, cells(path, "markdown"))
    said = re.findall(r"exercises take (\d+) of them", " ".join(title.split()))
    tasks = [text for text in texts if text.startswith("## Exercise: ")]
    minutes = [int(number) for text in tasks for number in re.findall(r"^★+.*?\b(\d+) minutes", text, re.MULTILINE)]
    assert not said or (len(minutes), sum(minutes)) == (len(tasks), int(said[0]))


@each_notebook
def test_each_exercise_says_how_hard_it_is_and_the_title_what_that_means(path: Path) -> None:
    title, *texts = map(source, cells(path, "markdown"))
    tasks = [text for text in texts if text.startswith("## Exercise: ")]
    assert [text.split("\n")[0] for text in tasks if not re.search(r"^★{1,3}(,| ·) ", text, re.MULTILINE)] == []
    assert "★ means read or predict, ★★ implement, ★★★ design." in " ".join(title.split())


@each_notebook
def test_text_cells_are_short(path: Path) -> None:
    texts = {cell["id"]: source(cell) for cell in cells(path, "markdown")}
    counts = {name: words(text) for name, text in texts.items()}
    tasks = {name: counts.pop(name) for name, text in texts.items() if text.startswith("## Exercise: ")}
    assert {name: count for name, count in tasks.items() if count > MAX_TASK_WORDS} == {}
    assert {name: count for name, count in counts.items() if count > MAX_WORDS} == {}
    assert sorted(counts.values())[len(counts) // 2] <= USUAL_WORDS


@each_notebook
def test_code_cells_are_short(path: Path) -> None:
    long = {}
    for cell in cells(path, "code"):
        solution, rest = solution_and_rest(source(cell))
        if len(rest) > MAX_CODE_LINES and "setup" not in cell["metadata"].get("tags", []):
            long[cell["id"]] = len(rest)
        if len(solution) > LONGER_SOLUTIONS.get(cell["id"], MAX_SOLUTION_LINES):
            long[cell["id"]] = len(solution)
    assert long == {}


@each_notebook
def test_code_fits_into_the_window(path: Path) -> None:
    shown = {cell["id"]: solution_and_rest(source(cell))[1] for cell in cells(path, "code")}
    assert {name: line for name, lines in shown.items() for line in lines if len(line) > MAX_COLUMNS} == {}


@each_notebook
def test_the_set_up_cell_holds_imports_and_the_seed_and_nothing_else(path: Path) -> None:
    (setup,) = [cell for cell in cells(path, "code") if "setup" in cell["metadata"].get("tags", [])]
    lines = [line for line in source(setup).splitlines() if line]
    assert cells(path, "code")[0] is setup
    assert lines[-1] == "torch.manual_seed(0);"  # the semicolon keeps the generator from being shown
    assert all(re.match(r"(import|from) ", line) for line in lines[:-1])


@each_notebook
def test_nothing_points_to_this_machine_or_to_the_network(path: Path) -> None:
    for cell in read(path)["cells"]:
        text = source(cell)
        assert not re.search(r"(?<![\w.])(/(home|work|root|tmp|usr|Users|mnt)/|[A-Z]:\\)", text), cell["id"]
        assert not re.search(r"https?://|from_pretrained|pip install|^\s*[!%]", text, flags=re.MULTILINE), cell["id"]


@each_notebook
def test_every_picture_says_in_words_what_it_shows(path: Path) -> None:
    for cell in cells(path, "markdown"):
        text = source(cell)
        assert not re.search(r"!\[\s*\]", text), cell["id"]
        for tag in re.findall(r"<img\b[^>]*>", text):
            assert re.search(r'alt="[^"]+"', tag), cell["id"]


@each_notebook
def test_nbgrader_metadata_is_complete(path: Path) -> None:
    for cell in graded(path):
        flags = cell["metadata"]["nbgrader"]
        assert set(flags) == NBGRADER_KEYS | ({"points"} if flags["grade"] else set())
        assert flags["schema_version"] == 3
        assert cell["id"] == flags["grade_id"], "cell id and grade id are one name"


@each_notebook
def test_an_exercise_is_five_cells(path: Path) -> None:
    order = read(path)["cells"]
    answers = graded(path, solution=True)
    assert answers
    for answer in answers:
        name, at = answer["id"], order.index(answer)
        task, _, attempt, check, question = order[at - 1 : at + 4]
        assert re.match(r"## Exercise: ", source(task)), name
        assert re.search(r"\*\*\d+ points\*\*", source(task)), f"{name}: the target is a number"
        assert attempt["cell_type"] == "code"
        assert "except NotImplementedError" in source(attempt), f"{name}: trying must not stop an unanswered notebook"
        assert check["id"] == f"{name}_check"
        assert question["cell_type"] == "markdown"
        assert source(question).startswith("**Think.**")


@each_notebook
def test_answer_cells_hold_one_solution_and_checks_are_the_two_lines(path: Path) -> None:
    for answer in graded(path, solution=True):
        flags = answer["metadata"]["nbgrader"]
        by_hand = bool(find(answer["id"]).by_hand)  # nbgrader's word for a person's points: grade and solution
        assert (flags["grade"], flags["locked"], flags["task"]) == (by_hand, False, False)
        markers = [line.strip() for line in source(answer).splitlines() if "SOLUTION" in line]
        assert markers == ["### BEGIN SOLUTION", "### END SOLUTION"]
    for check in graded(path, grade=True, solution=False):
        flags = check["metadata"]["nbgrader"]
        assert (flags["solution"], flags["locked"], flags["task"]) == (False, True, False)
        name = check["id"].removesuffix("_check")
        assert re.fullmatch(rf'from autograder\.practice import check\ncheck\("{name}", \w+\)', source(check))


@each_notebook
def test_solution_markers_stand_in_answer_cells_only(path: Path) -> None:
    answers = {cell["id"] for cell in graded(path, solution=True)}
    for cell in read(path)["cells"]:
        if cell["id"] not in answers:
            assert "SOLUTION" not in source(cell), cell["id"]
            assert "HIDDEN TESTS" not in source(cell), cell["id"]


@each_notebook
def test_a_summary_in_five_lines_and_what_comes_next_close_the_notebook(path: Path) -> None:
    text = source(read(path)["cells"][-1])
    assert text.startswith("## Summary\n")
    assert re.findall(r"^(\d)\. ", text, flags=re.MULTILINE) == list("12345")
    assert "**Next:**" in text.splitlines()[-1]
