"""The report of one exercise as self-contained HTML, for notebook outputs, feedback and the class report.

Nothing sanitises this HTML later, so `markup` builds it and escapes every string. Styles are inline, because pages
that show untrusted notebooks drop style elements. Colours are translucent, so the report is readable on light and
dark pages. Everything that a colour means is also written as a word.
"""

from collections.abc import Iterator, Sequence

from autograder.host.records import CheckRecord, CheckStatus, ExerciseRecord, ExerciseStatus, KernelRecord, SpeedRecord
from autograder.host.report import wording
from autograder.host.report.safe_text import Html, coded, element, joined
from autograder.host.value_cap import condition

_GREY, _BLUE, _GREEN, _RED, _AMBER = "128,128,128", "40,110,220", "20,140,90", "205,60,50", "200,130,0"
_BOX = (
    f"font:14px/1.5 system-ui,sans-serif;border:1px solid rgba({_GREY},.35);border-radius:8px;"
    "padding:12px 16px;max-width:56em"
)
_WRAPPED = "white-space:pre-wrap;overflow-wrap:anywhere"
_NOTE = f"margin:8px 0;padding:6px 12px;{_WRAPPED};border-left:4px solid"
_MESSAGE = f"{_NOTE} rgba({_AMBER},.8);background:rgba({_AMBER},.1)"
_REMARK = f"{_NOTE} rgba({_GREY},.5);background:rgba({_GREY},.08)"
# notebook pages style every table, so table and cells set every property that must not be inherited
_TABLE = "border-collapse:collapse;table-layout:auto;width:100%;margin:8px 0 0;font:inherit"
_CELL = "text-align:left;line-height:1.5;vertical-align:top;padding:4px 12px 4px 0;border:0;white-space:normal"
_NARROW = (
    "text-align:right;line-height:1.5;vertical-align:top;padding:4px 0 4px 12px;border:0;white-space:nowrap;width:1%"
)
_HEADING = "display:flex;flex-wrap:wrap;gap:4px 16px;align-items:baseline"
_BADGE = "display:inline-block;padding:0 8px;border-radius:6px;white-space:nowrap"
_QUIET = "opacity:.75"
_SUMMARY = "display:list-item;cursor:pointer"  # nbgrader's pages make it a block, which has no triangle
_LINE = f"position:relative;height:12px;margin:4px 0;border-radius:4px;background:rgba({_GREY},.2)"
_ON_LINE = "position:absolute;top:0;height:12px;border-radius:2px"
_LABEL = "position:absolute;white-space:nowrap;font-size:12px;line-height:16px"
_ROW_PX = 16
# Of the narrowest page on which labels must not overlap, so that they get another row where they might.
_PAGE_PX, _CHARACTER_PX = 420, 7
_TINTS = {
    CheckStatus.PASSED: _GREEN,
    CheckStatus.FAILED: _RED,
    CheckStatus.ERROR: _RED,
    CheckStatus.NOT_ASSESSED: _GREY,
}


def exercise_html(
    record: ExerciseRecord, *, notes: Sequence[str] = (), warnings: Sequence[str] = (), show_hidden: bool = False
) -> Html:
    """Return the report of one exercise as HTML: marks, checks with messages, counted cost beside the minimum.

    Hidden checks appear by category only; `show_hidden` is for instructors. `notes` and `warnings` are sentences to
    put below the marks; warnings stand out.
    """
    remarks = [note for note in dict.fromkeys(notes) if note and note != record.message]
    return element(
        "div",
        _heading(record),
        *(
            element("div", coded(text), style=_MESSAGE)
            for text in (*warnings, record.message, condition(record))
            if text
        ),
        *(element("div", coded(remark), style=_REMARK) for remark in remarks),
        _table(record, show_hidden),
        *_quantities(record),
        style=_BOX,
    )


def _heading(record: ExerciseRecord) -> Html:
    words = "" if record.status is ExerciseStatus.GRADED else f" · {wording.EXERCISE_WORDS[record.status]}"
    line = element(
        "div",
        element("strong", record.id, style="font-size:16px"),
        element("span", element("strong", wording.marks(record.points, record.max_points)), " points"),
        element("span", f"{wording.percent(record.points, record.max_points)} %{words}", style=_QUIET),
        style=_HEADING,
    )
    return joined(line, _bar(record.points, record.max_points, _BLUE))


def _table(record: ExerciseRecord, show_hidden: bool) -> Html:
    rows = [_check(check, record) for check in record.checks if show_hidden or not check.hidden]
    for group in wording.hidden_categories(record.checks) if not show_hidden else ():
        label = joined(group.category, element("span", f" · hidden check{wording.earned_by(group.by)}", style=_QUIET))
        rows.append(_row(group, label, record.status))
    if not rows:
        return Html()
    return element("table", *rows, style=_TABLE)


def _check(check: CheckRecord, record: ExerciseRecord) -> Html:
    kind = f"{f' · hidden, {check.category}' if check.hidden else ''}{wording.earned_by(check.by)}"
    message = element("div", coded(check.message), style=_WRAPPED) if check.message not in ("", record.message) else ""
    about = element("span", kind, style=_QUIET) if kind else ""
    return _row(check, joined(coded(check.name), about, message), record.status)


def _row(check: CheckRecord | wording.HiddenCategory, label: Html, exercise: ExerciseStatus) -> Html:
    tint = _GREY if exercise is ExerciseStatus.NOT_FOUND else _TINTS[check.status]
    badge = element("span", wording.check_words(check.status, exercise), style=f"{_BADGE};background:rgba({tint},.18)")
    return element(
        "tr",
        element("td", badge, style=f"{_CELL};width:1%"),
        element("td", label, style=_CELL),
        element("td", wording.check_marks(check), style=_NARROW),
        style="background:none",
    )


def _quantities(record: ExerciseRecord) -> Iterator[Html]:
    pairs, others = wording.with_minimum(dict(record.counted))
    for key, value, minimum in pairs:
        longest = max(value, minimum)
        yield element(
            "div",
            wording.quantity_name(key),
            _labelled("yours", wording.number(value), _bar(value, longest, _BLUE)),
            _labelled("minimum", wording.number(minimum), _bar(minimum, longest, _GREY)),
            style="margin-top:10px",
        )
    if others:
        yield element("div", _list(others), style="margin-top:8px")
    if record.measured:
        measured = _list(list(record.measured.items()))
        yield element("div", f"measured: {measured}", style=f"margin-top:8px;{_QUIET}")
    if record.bonus is not None:
        headline = joined("bonus: ", element("strong", wording.bonus_headline(record.bonus)))
        told = element("div", coded(wording.bonus_reason(record.bonus)), style=f"{_QUIET};{_WRAPPED}")
        yield element("div", headline, told, style="margin-top:10px")
    if record.speed is not None:
        yield _speed(record.speed, wording.speed_words(record), folded=wording.all_is_well(record))
    if record.badge is not None:
        yield _badge_of(record.badge)


def _badge_of(record: KernelRecord) -> Html:
    headline = joined("bandwidth badge, no points: ", element("strong", wording.kernel_headline(record)))
    told = (wording.kernel_details(record), record.reason)
    lines = (element("div", coded(words), style=f"{_QUIET};{_WRAPPED}") for words in told if words)
    return element("div", headline, *lines, style="margin-top:10px")


def _speed(speed: SpeedRecord, decided: str, *, folded: bool) -> Html:
    """Draw the ratio, and say what explains it, folded if nothing needs attention."""
    verdict = element("span", f" · {decided}", style=_QUIET)
    headline = joined("measured speed: ", element("strong", wording.speed_headline(speed)), verdict)
    sentences = (
        wording.speed_doubt(speed),
        wording.speed_asked(speed),
        wording.speed_details(speed),
        wording.speed_cost(speed),
        wording.speed_roofline(speed),
        speed.reason,
    )
    return element(
        "details",
        element("summary", headline, style=_SUMMARY),
        _picture(speed),
        *(element("div", words, style=f"{_QUIET};{_WRAPPED}") for words in sentences if words),
        open="" if folded else "open",
        style="margin-top:10px",
    )


def _picture(speed: SpeedRecord) -> Html:
    """Draw the ratio on a line, with its interval as a band, and labelled marks for 1 and the required ratios."""
    at, labels = wording.speed_places(speed), wording.speed_marks(speed)
    colours = {"same": _GREY, "passing": _AMBER, "full": _GREEN, "ideal": _GREY}
    band = f"left:{100 * at['low']:.1f}%;width:{100 * (at['high'] - at['low']):.1f}%;background:rgba({_BLUE},.35)"
    ticks = [_mark(at[name], colours[name]) for name in labels]
    line = element(
        "div", element("div", style=f"{_ON_LINE};{band}"), *ticks, _mark(at["ratio"], _BLUE, width=4), style=_LINE
    )
    yours = element("div", _label(at["ratio"], 0, f"{speed.ratio:.2f} yours"), style=_rows(1))
    placed = _in_rows({label: at[name] for name, label in labels.items()})
    below = element("div", *(_label(*each) for each in placed), style=_rows(1 + max(row for _, row, _ in placed)))
    named = ", ".join(labels.values())
    alt = f"A line with a mark at your ratio, {wording.speed_headline(speed)}, and marks at {named}."
    return element("div", yours, line, below, role="img", aria_label=alt, style="margin:6px 0")


def _rows(number: int) -> str:
    return f"position:relative;height:{number * _ROW_PX}px"


def _in_rows(places: dict[str, float]) -> list[tuple[float, int, str]]:
    """Return place, row and text of each label, in the first row where it overlaps no other."""
    ends: list[float] = []
    found = []
    for text, place in sorted(places.items(), key=lambda label: label[1]):
        width = _CHARACTER_PX * (len(text) + 2) / _PAGE_PX
        left = place - _shift(place) * width
        row = next((row for row, end in enumerate(ends) if end <= left), len(ends))
        ends[row : row + 1] = [left + width]
        found.append((place, row, text))
    return found


def _shift(place: float) -> float:
    """Return the part of a label's width that stands left of its place: half of it, except near the ends."""
    return 0.0 if place < 0.1 else 1.0 if place > 0.9 else 0.5


def _label(place: float, row: int, text: str) -> Html:
    moved = f"left:{100 * place:.1f}%;top:{row * _ROW_PX}px;transform:translateX({-100 * _shift(place):g}%)"
    return element("div", text, style=f"{_LABEL};{moved}")


def _mark(place: float, colour: str, width: int = 2) -> Html:
    style = f"{_ON_LINE};left:calc({100 * place:.1f}% - {width / 2:g}px);width:{width}px;background:rgba({colour},.9)"
    return element("div", style=style)


def _list(quantities: Sequence[tuple[str, float]]) -> str:
    return " · ".join(wording.quantity(key, value) for key, value in quantities)


def _labelled(label: str, value: str, bar: Html) -> Html:
    return element(
        "div",
        element("span", label, style=f"width:5em;{_QUIET}"),
        element("span", value, style="width:6em;text-align:right"),
        element("div", bar, style="flex:1"),
        style="display:flex;gap:12px;align-items:center",
    )


def _bar(value: float, longest: float, colour: str) -> Html:
    width = 100 * min(max(value / longest, 0.0), 1.0) if longest > 0 else 0.0
    shape = "height:8px;border-radius:4px"
    inside = element("div", style=f"{shape};width:{width:.1f}%;background:rgba({colour},.75)")
    track = f"{shape};margin:3px 0;background:rgba({_GREY},.2)"
    return element("div", inside, style=track, aria_hidden="true")
