"""Replace nbconvert's filters of templates in feedback and in Formgrader's manual view.

Each cell is typeset in a limited process. A page has a sum of processor time for all its cells. Where a cell would take
more, it is shown as plain text, so every hand-in gets its page. A cell that many notebooks contain is typeset once.
"""

from collections.abc import Mapping
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from autograder.classroom.pages.limited_process import LimitedProcess
from autograder.classroom.pages.typesetting import typeset

CELL_CPU_S = 1.0  # a cell of 20,000 characters, the longest that is shown, takes a tenth
PAGE_CPU_S = 4.0
MOST_CELLS = 2_000  # that are cached
_LEFT = "autograder_cpu_s_left"  # in the resources of one page
_TOO_LONG = "This text takes too long to be typeset, so it is shown as it was written."

_process = LimitedProcess(typeset)
_typeset: dict[tuple[str, ...], Markup] = {}


@pass_context
def markdown2html(context: Context, source: str) -> Markup:
    """Return Markdown as HTML, with the pictures that are attached to the cell."""
    cell = context.get("cell") or {}
    return _within_limits(context, "markdown", source, pictures=cell.get("attachments") or {})


@pass_context
def highlight_code(
    context: Context, source: str, language: str | None = None, metadata: Mapping[str, Any] | None = None
) -> Markup:
    """Return code as HTML with colours."""
    magics = (metadata or {}).get("magics_language")
    return _within_limits(context, "code", source, language=language or "ipython3", magics=magics)


def clean_html(text: str) -> Markup:
    """Return what the other filters have made unchanged, and a raw cell as the text that it is."""
    return text if isinstance(text, Markup) else Markup("<pre>{}</pre>").format(text)


def strip_files_prefix(text: Markup) -> Markup:
    """Return what the other filters have made; nbconvert looks for addresses of old notebooks, in time squared."""
    return text


def _within_limits(context: Context, kind: str, text: str, **options: Any) -> Markup:
    key = (kind, text, *(str(value) for value in options.values()))
    known = _typeset.get(key)
    if known is not None:
        return known
    resources = context.get("resources")
    left_s = resources.get(_LEFT, PAGE_CPU_S)
    made, used_s = None, 0.0
    if left_s > 0:
        made, used_s = _process.call({"kind": kind, "text": text, **options}, cpu_s=min(CELL_CPU_S, left_s))
    resources[_LEFT] = left_s - used_s
    if made is None:
        return Markup("<p><em>{}</em></p><pre>{}</pre>").format(_TOO_LONG, text)
    safe = Markup(made)  # cleaned by `typeset`
    if not options.get("pictures"):
        if len(_typeset) >= MOST_CELLS:
            _typeset.clear()
        _typeset[key] = safe
    return safe
