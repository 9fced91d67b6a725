r"""Typeset one cell as HTML: Markdown with formulas, or coloured code.

Markdown is read by mistune, formulas become MathML by latex2mathml, and code is coloured by Pygments. None of these
promises to withstand what a student can write, in content or in time. So HTML in Markdown is shown as text, all that
they make is cleaned by nh3, which keeps the tags, attributes and schemes listed here, and `limited_process` runs them.

>>> typeset("markdown", "$a_1$ in [a script](javascript:alert(1))")
'<p><math display="inline"><mrow><msub><mi>a</mi><mn>1</mn></msub></mrow></math> in a script</p>\n'
"""

import html
import re
from collections.abc import Mapping
from urllib.parse import unquote
from xml.etree import ElementTree

import nh3
from latex2mathml.converter import Converter
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

FORMULA_CHARACTERS = 2_000
PICTURE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
Pictures = Mapping[str, Mapping[str, str]]  # by name, then by type: the picture in base 64

_LINK = re.compile(r"(?:https?://|mailto:|#)[\x21-\x7e]*", re.IGNORECASE)
_PICTURE = re.compile(rf"data:(?:{'|'.join(PICTURE_TYPES)});base64,[A-Za-z0-9+/=]*")
_TEXT_TAGS = """
    a b blockquote br code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr i img input li ol p pre span strong sub sup table
    tbody td th thead tr ul
"""
_FORMULA_TAGS = """
    math maction mfrac menclose mi mmultiscripts mn mo mover mpadded mphantom mroot mrow ms mspace msqrt mstyle msub
    msubsup msup mtable mtd mtext mtr munder munderover
"""
_OF_A_FORMULA = """
    columnalign columnlines columnspacing depth display displaystyle fence form height largeop linethickness lspace
    mathcolor mathsize mathvariant maxsize minsize movablelimits notation rowlines rowspacing rspace scriptlevel
    separator stretchy symmetric voffset width
"""
_ATTRIBUTES = {
    "a": {"href", "title"},
    "div": {"class"},
    "img": {"src", "alt", "title"},
    "input": {"checked", "class", "disabled", "type"},
    "ol": {"start"},
    "span": {"class"},
    **{tag: set(_OF_A_FORMULA.split()) for tag in _FORMULA_TAGS.split()},
}
_CLEANER = nh3.Cleaner(
    tags={*_TEXT_TAGS.split(), *_FORMULA_TAGS.split()},
    attributes=_ATTRIBUTES,
    attribute_filter=lambda tag, name, value: _allowed(name, value),
    url_schemes={"http", "https", "mailto", "data"},
    link_rel="noopener noreferrer",
)


def _allowed(name: str, value: str) -> str | None:
    wanted = {"href": _LINK, "src": _PICTURE}.get(name)
    return value if wanted is None or wanted.fullmatch(value) else None


def typeset(
    kind: str, text: str, *, language: str = "ipython3", magics: str | None = None, pictures: Pictures | None = None
) -> str:
    """Return `text` of the kind "markdown" or "code" as HTML that is safe in any page; it may take any time."""
    if kind == "code":
        return _CLEANER.clean(Highlight2HTML()(text, language, {"magics_language": magics} if magics else None))
    return _CLEANER.clean(MarkdownWithMath(renderer=_Renderer(pictures or {})).render(_as_written(text)))


def _as_written(text: str) -> str:
    """Return Markdown with the characters that nbgrader's steps escaped, which code and formulas would show escaped."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


class _Renderer(IPythonRenderer):
    """Write formulas as MathML, and links and pictures with allowed addresses only."""

    def __init__(self, pictures: Pictures) -> None:
        super().__init__(escape=True, allow_harmful_protocols=False, exclude_anchor_links=True)
        self._pictures = pictures

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Return a link; where the address is not allowed, its text."""
        return str(super().link(text, url, title)) if _LINK.fullmatch(url) else text

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """Return a picture that is attached to the cell; of any other, a link or its description."""
        described = html.escape(text) or "without a description"
        name = unquote(html.unescape(url.removeprefix("attachment:")))
        for kind, data in self._pictures.get(name, {}).items() if url.startswith("attachment:") else ():
            if kind in PICTURE_TYPES:
                return f'<img src="data:{kind};base64,{html.escape(data)}" alt="{described}">'
        shown = f"[picture: {described}]"
        return f'<a href="{html.escape(url)}">{shown}</a>' if _LINK.fullmatch(url) else shown

    def block_mermaidjs(self, code: str) -> str:
        """Return the text of a diagram, which only a script could draw."""
        return f"<pre><code>{html.escape(code)}</code></pre>"

    def inline_math(self, body: str) -> str:
        """Return a formula inside a line."""
        return _formula(body, f"${body}$", "inline")

    def block_math(self, body: str) -> str:
        """Return a formula on lines of its own."""
        return _formula(body, f"$${body}$$", "block")

    def latex_environment(self, name: str, body: str) -> str:
        r"""Return what stands between `\begin{name}` and `\end{name}`."""
        whole = rf"\begin{{{name}}}{body}\end{{{name}}}"
        return _formula(whole, whole, "block")


def _formula(body: str, written: str, display: str) -> str:
    """Return a formula as MathML, or as it was written if it cannot be read."""
    if len(body) <= FORMULA_CHARACTERS:
        try:
            made = Converter(display=display).convert_to_element(body)
            for part in made.iter():
                part.text = html.unescape(part.text or "")  # some symbols are references already
            return ElementTree.tostring(made, encoding="unicode")
        except Exception:  # latex2mathml fails in many ways on what is no LaTeX
            pass
    return f"<code>{html.escape(written)}</code>"
