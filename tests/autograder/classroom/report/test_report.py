"""What reports say, what they must not say, and that no student's text gets out of its place."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from autograder.classroom.report import class_html, class_pages, class_text, summarise, this_environment
from autograder.classroom.report.attention import Urgency
from autograder.host.records import (
    WITHOUT_MARK,
    CheckRecord,
    CheckStatus,
    CopyRecord,
    CountedCost,
    ExerciseRecord,
    ExerciseStatus,
    SandboxRecord,
    SpeedRecord,
    SubmissionRecord,
)
from autograder.host.report import exercise_html, exercise_text
from autograder.host.report.safe_text import Html, coded, element
from tests.autograder.classroom.report.sample_class import (
    HOSTILE,
    attention_exercise,
    fusion_exercise,
    sample_class,
    submission,
)


class Elements(HTMLParser):
    """Collects tags and attribute names, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def pages() -> dict[str, str]:
    summary = summarise(sample_class(), absent={"01_transformer": [HOSTILE + "2"]}, names={HOSTILE: HOSTILE[::-1]})
    return class_pages(summary, title=HOSTILE, environment=this_environment(("odd", HOSTILE)))


@pytest.mark.parametrize("show_hidden", [False, True])
def test_no_text_of_a_student_becomes_markup(show_hidden: bool) -> None:
    check = CheckRecord(HOSTILE, HOSTILE, False, CheckStatus.FAILED, 0.0, 1.0, HOSTILE)
    hidden = CheckRecord(HOSTILE, HOSTILE, True, CheckStatus.FAILED, 0.0, 1.0, HOSTILE)
    record = ExerciseRecord(
        HOSTILE, HOSTILE, 0.0, 2.0, ExerciseStatus.KILLED, HOSTILE, (check, hidden), {HOSTILE: 1.0}, {HOSTILE: 2.0}
    )
    seen = Elements(exercise_html(record, notes=[HOSTILE], show_hidden=show_hidden))
    assert seen.tags <= {"div", "span", "strong", "table", "tr", "td"}
    assert seen.attributes <= {"style", "aria-hidden"}
    assert seen.open == []


def test_no_page_holds_a_script_or_loads_anything() -> None:
    for text in pages().values():
        seen = Elements(text)
        assert not seen.tags & {"script", "img", "iframe", "object", "link", "form", "base"}
        assert not {name for name in seen.attributes if name.startswith("on") or name == "src"}
        assert "http" not in text.replace("http-equiv", "")
        text.encode("utf-8")


def test_each_link_of_the_class_page_leads_to_a_page_or_a_place() -> None:
    written = pages()
    links = set(re.findall(r'href="([^"]+)"', written["index.html"]))
    places = {f"#{name}" for name in re.findall(r' id="([^"]+)"', written["index.html"])}
    assert {link for link in links if not link.startswith("#")} == written.keys() - {"index.html"}
    assert {link for link in links if link.startswith("#")} <= places


def test_ids_that_differ_in_case_or_hold_signs_of_a_path_have_pages_of_their_own() -> None:
    students = ("ada", "Ada", "../ada", "a/da", "a_da", "a_da-3", "", "…")
    summary = summarise([submission(name, attention_exercise(6)) for name in students])
    written = class_pages(summary, title="t", environment=this_environment())
    assert len({path.casefold() for path in written}) == len(students) + 1
    assert all(re.fullmatch(r"students/[A-Za-z0-9_-]+\.html", path) for path in written if path != "index.html")


def test_a_terminal_gets_no_control_characters() -> None:
    summary = summarise(sample_class())
    texts = [class_text(summary, title="t", environment=this_environment(("odd", HOSTILE)))]
    texts += [exercise_text(e, notes=[HOSTILE]) for r in sample_class() for e in r.exercises]
    for text in texts:
        assert not set(text) & {"\x1b", "\u202e", "\ud800", "\r", "\x07"}


def test_plain_strings_are_escaped_and_html_is_kept() -> None:
    assert element("p", "<b>", Html("<i></i>"), title='"') == '<p title="&quot;">&lt;b&gt;<i></i></p>'


@pytest.mark.parametrize("show", [exercise_html, exercise_text])
def test_hidden_checks_show_their_category_and_nothing_else(show: object) -> None:
    record = attention_exercise(3)
    assert callable(show)
    shown, full = show(record), show(record, show_hidden=True)
    assert "cases you have not seen" in shown
    assert "fully masked row" not in shown
    assert "4 times too small" not in shown
    assert "fully masked row" in full


def test_one_failed_check_fails_its_hidden_category() -> None:
    assert "✗ failed" in exercise_text(attention_exercise(5)).splitlines()[-1]
    assert "✗" not in exercise_text(attention_exercise(6))


@pytest.mark.parametrize("show", [exercise_html, exercise_text])
def test_counted_cost_stands_beside_its_minimum(show: object) -> None:
    assert callable(show)
    text = show(fusion_exercise(3, 8.0))
    for part in ("launches", "minimum", "12,288", "4,096", "41.5 µs"):
        assert part in text


def test_what_was_not_assessed_shows_a_dash_and_not_a_zero() -> None:
    (line,) = [x for x in exercise_text(fusion_exercise(1, 12.0)).splitlines() if " speed " in x]
    assert line.split()[-1] == "–"


def test_both_twins_say_the_same_about_the_class() -> None:
    summary = summarise(sample_class())
    environment = this_environment(("secret seed", "fingerprint 12ab"))
    text = class_text(summary, title="t", environment=environment)
    html = class_html(summary, title="t", environment=environment)
    for part in ("mean", "not graded", "time limit", "fingerprint 12ab", "it is not JSON", "honest_5"):
        assert part in text, part
        assert part in html, part


def test_a_summary_counts_what_was_handed_in() -> None:
    summary = summarise(sample_class())
    by_name = {student.name: student for student in summary.students}
    assert (by_name["endless_loop"].points, by_name["endless_loop"].max_points) == (0.0, 22.0)
    # our own failure takes no points away
    assert by_name["honest_6"].percent == 100
    assert sum(summary.bins) == len(summary.students) == 10
    fully = next(e for e in summary.exercises if e.id == "01_scaled_dot_product")
    assert (fully.full, fully.handed_in) == (3, 10)


@pytest.mark.parametrize("status", sorted(WITHOUT_MARK))
def test_a_hand_in_without_a_mark_is_left_out_of_the_mean_and_counted(status: ExerciseStatus) -> None:
    unmarked = ExerciseRecord("01_scaled_dot_product", "callable", 0.0, 0.0, status)
    summary = summarise([submission("a", attention_exercise(6)), submission("b", unmarked)])
    assert (summary.mean_percent, summary.median_percent, sum(summary.bins)) == (100.0, 100.0, 1)
    environment = this_environment()
    text, html = (show(summary, title="t", environment=environment) for show in (class_text, class_html))
    assert "2 students (1 without a mark, left out of mean and median) · mean 100 %" in text
    assert '<b>1</b><span class="quiet">without a mark, left out of mean and median</span>' in html
    assert " 0 %" not in text
    assert "without a mark" not in class_text(summarise(sample_class()), title="t", environment=environment)


def test_a_second_record_of_the_same_submission_replaces_the_first() -> None:
    first, second = submission("s", attention_exercise(1)), submission("s", attention_exercise(6))
    assert summarise([first, second]).students[0].points == 10.0


def test_what_needs_a_person_comes_in_order_of_urgency() -> None:
    entries = summarise(sample_class()).attention
    assert [e.urgency for e in entries] == sorted(e.urgency for e in entries)
    assert {e.student for e in entries if e.urgency == 0} == {"honest_6", "not_json"}
    assert any(e.student == "7 submissions" and "speed" in e.sentence for e in entries)


def test_an_empty_class_still_makes_a_report() -> None:
    summary = summarise([])
    assert "0 students" in class_text(summary, title="t", environment=this_environment())
    assert class_html(summary, title="t", environment=this_environment())


SPEED = SpeedRecord(
    verdict="pass",
    reason="Measured on <b>a CPU</b>.",
    ratio=1.48,
    ratio_low=1.44,
    ratio_high=1.53,
    pairs=15,
    attempts=1,
    answer_us=246.0,
    baseline_us=1364.0,
    passing=1.3,
    full=1.65,
    ideal=2.0,
    device="cpu",
)


@pytest.mark.parametrize("ratio", [0.01, 1.48, 400.0])
def test_a_measured_speed_is_shown_with_its_interval_and_what_was_asked_for(ratio):
    speed = replace(SPEED, ratio=ratio, ratio_low=0.9 * ratio, ratio_high=1.1 * ratio)
    record = ExerciseRecord("x", "graph", 1, 1, ExerciseStatus.GRADED, speed=speed)
    text, page = exercise_text(record), exercise_html(record)

    for shown in (text, page):
        assert f"{ratio:.2f} times as fast as the baseline (95 %: {0.9 * ratio:.2f} to {1.1 * ratio:.2f})" in shown
        assert "fast enough" in shown
        assert "1.3 passes, 1.65 earns all points, 2 is about what a good answer reaches on a CPU" in shown
        assert "246 µs for a call of yours, 1.36 ms for one of the baseline (15 pairs, cpu)" in shown
    assert "<b>a CPU" not in page
    assert max(len(line) for line in text.splitlines()) <= 110


def test_a_speed_that_is_only_shown_says_where_its_marks_hold():
    record = ExerciseRecord("x", "graph", 1, 1, ExerciseStatus.GRADED, speed=replace(SPEED, verdict="shown"))

    for shown in (" ".join(exercise_text(record).split()), exercise_html(record)):
        assert "shown, not graded" in shown
        assert "2 is about what a good answer reaches on a CPU" in shown
        assert "Where the ratio is graded: 1.3 passes" in shown


@pytest.mark.parametrize(
    ("low", "verdict", "said"), [(0.4, "shown", True), (1.01, "shown", False), (0.4, "fail", False)]
)
def test_an_interval_that_holds_1_is_said_to_decide_nothing(low, verdict, said):
    speed = replace(SPEED, verdict=verdict, ratio_low=low)
    record = ExerciseRecord("x", "graph", 1, 1, ExerciseStatus.GRADED, speed=speed)

    for shown in (exercise_text(record), exercise_html(record)):
        assert ("does not tell which of the two is faster" in " ".join(shown.split())) == said


def test_a_ratio_that_is_graded_nowhere_has_no_required_ratios():
    speed = replace(SPEED, verdict="shown", passing=0.0, full=0.0)
    record = ExerciseRecord("x", "graph", 1, 1, ExerciseStatus.GRADED, speed=speed)

    for shown in (exercise_text(record), exercise_html(record)):
        assert "2 ideal" in shown
        assert not {"passes", "passing", "earns", "full"} & set(shown.split())


@pytest.mark.parametrize(
    ("points", "changes", "folded"),
    [
        (1, {}, True),
        (1, {"verdict": "shown"}, True),
        (1, {"verdict": "shown", "ratio_low": 0.97}, False),
        (0.5, {}, False),
        (1, {"verdict": "inconclusive"}, False),
        (1, {"flags": ("beyond the roofline",)}, False),
    ],
)
def test_the_speed_is_folded_where_nothing_needs_attention(points, changes, folded):
    record = ExerciseRecord("x", "graph", points, 1, ExerciseStatus.GRADED, speed=replace(SPEED, **changes))
    page = exercise_html(record)

    assert ("<details open=" not in page) is folded
    assert "1.48 times as fast" in page.split("</summary>")[0]


def test_the_picture_of_the_speed_names_its_marks_for_readers_of_any_kind():
    record = ExerciseRecord("x", "graph", 1, 1, ExerciseStatus.GRADED, speed=SPEED)
    page, text = exercise_html(record), exercise_text(record)
    alternative = page.split('role="img" aria-label="')[1].split('"')[0]

    for label in ("1 baseline", "1.3 passing", "1.65 full", "2 ideal"):
        assert f">{label}</div>" in page
        assert label in alternative
        assert label in text
    assert ">1.48 yours</div>" in page
    assert "1.48 times as fast" in alternative
    assert "1.48 yours" in text


def test_labels_that_would_overlap_get_rows_of_their_own():
    near = replace(SPEED, passing=1.01, full=1.02, ideal=1.03, ratio=1.5, ratio_low=1.4, ratio_high=1.6)
    tops = {
        speed: [
            exercise_html(ExerciseRecord("x", "graph", 1, 1, ExerciseStatus.GRADED, speed=speed))
            .split(f">{label}</div>")[0]
            .rpartition(";top:")[2]
            .split(";")[0]
            for label in labels
        ]
        for speed, labels in (
            (near, ("1 baseline", "1.01 passing", "1.02 full", "1.03 ideal")),
            (replace(SPEED, passing=1.3, full=2.0, ideal=3.0), ("1 baseline", "1.3 passing", "2 full", "3 ideal")),
        )
    }
    assert tops[near] == ["0px", "16px", "32px", "48px"]
    assert [*tops.values()][1] == ["0px", "16px", "0px", "0px"]


COUNTED = replace(SPEED, baseline_cost=CountedCost(2, 48 << 20), answer_cost=CountedCost(1, 24 << 20))


@pytest.mark.parametrize("show", [exercise_html, exercise_text])
def test_launches_and_bytes_explain_the_ratio(show):
    def told(speed):
        return " ".join(show(ExerciseRecord("x", "graph", 1, 1, ExerciseStatus.GRADED, speed=speed)).split())

    assert "the baseline launches 2 and moves 48 MiB; yours launches 1 and moves 24 MiB" in told(COUNTED)
    assert "these bytes allow a ratio of 2.00. Reached: 102 GB/s, and 36.9 GB/s by the baseline." in told(COUNTED)
    assert "waits for something else" in told(replace(COUNTED, ratio=2.4, ratio_low=2.3, ratio_high=2.5))
    assert "Roofline" not in told(replace(COUNTED, answer_cost=None))


def test_a_measured_speed_survives_the_journal():
    record = ExerciseRecord("x", "graph", 1, 1, ExerciseStatus.GRADED, speed=replace(COUNTED, flags=("look",)))
    whole = SubmissionRecord("01", "somebody", "0" * 64, SandboxRecord(1), (record,))

    assert SubmissionRecord.from_json(whole.to_json()) == whole


def test_what_stands_between_backticks_is_code_and_a_lone_backtick_stays():
    assert coded("`a < b` is `x`.") == "<code>a &lt; b</code> is <code>x</code>."
    assert coded("one ` and <b>") == "one ` and &lt;b&gt;"


def test_a_remark_is_quieter_than_what_went_wrong():
    page = exercise_html(
        ExerciseRecord("01_a", "value", 0, 4, ExerciseStatus.TIMED_OUT, "It stopped."), notes=["Later."]
    )
    shown = {text: page.split(text)[0].rpartition("<div ")[2] for text in ("It stopped.", "Later.")}
    assert shown["It stopped."] != shown["Later."]


def test_a_copied_function_is_shown_beside_the_text_that_it_copies():
    copy = CopyRecord("attend", "nn/functional.py: forward", f"def attend(): {HOSTILE}", "def forward(): return 1")
    record = submission("ada", replace(attention_exercise(6), copies=(copy,)))
    summary = summarise([SubmissionRecord.from_json(record.to_json().encode("utf-8", "replace"))])

    page = class_pages(summary, title="Class", environment=this_environment())["students/ada.html"]

    assert [(entry.urgency, entry.where) for entry in summary.attention] == [(Urgency.SHOULD, "01_scaled_dot_product")]
    assert "costs no points" in summary.attention[0].sentence
    assert page.index("def attend()") < page.index("def forward(): return 1")
    assert "<script>" not in page
    assert summary.students[0].points == 10
