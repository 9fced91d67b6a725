"""Make a student's text harmless where it is shown: in a page, a notebook output or a terminal.

>>> escaped("<b>hi</b>")
'&lt;b&gt;hi&lt;/b&gt;'
>>> printable("red \\x1b[31m alert")
'red �[31m alert'
>>> element("p", "1 < 2 ", element("b", "yes"), style="color:red")
Html('<p style="color:red">1 &lt; 2 <b>yes</b></p>')

The functions that build HTML escape automatically: plain strings are escaped, and only `Html` stays unchanged.
"""

import html
import unicodedata

MESSAGE_CHARACTERS = 2_000

# control characters drive a terminal, format characters reorder text, surrogates cannot be written
_UNSHOWABLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def printable(text: str, *, limit: int = MESSAGE_CHARACTERS) -> str:
    """Return `text` cut to `limit` characters, with all characters that may control a terminal replaced by �."""
    kept = text if len(text) <= limit else text[: limit - 1] + "…"
    if kept.replace("\n", "").replace("\t", "").isprintable():  # true for nearly every text, and quick to test
        return kept
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in _UNSHOWABLE else "\ufffd" for c in kept)


def one_line(text: str, *, limit: int = 200) -> str:
    """Return `text` on a single line, for tables."""
    return printable(" ".join(text[: 4 * limit].split()), limit=limit)


def escaped(text: str, *, limit: int = MESSAGE_CHARACTERS) -> str:
    """Return `text` escaped for the inside of an HTML element or of a quoted attribute."""
    return html.escape(printable(text, limit=limit), quote=True)


class Html(str):
    """Text that is already HTML; only `element` and `joined` create it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Html({super().__repr__()})"


def element(tag: str, *children: str, **attributes: str) -> Html:
    """Return one element with its children, and escape children that are strings; `class_` is the attribute `class`.

    Empty attributes are left out, and underscores in their names become hyphens.
    """
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if value}
    opening = "".join(f' {name}="{escaped(value)}"' for name, value in names.items())
    return Html(f"<{tag}{opening}>{joined(*children)}</{tag}>")


def coded(text: str) -> Html:
    """Return `text` with parts between backticks as code; a backtick without its partner stays as it is."""
    *pairs, last = text.split("`") if text.count("`") % 2 == 0 else [text]
    pieces = zip(pairs[::2], pairs[1::2], strict=True)
    return joined(*(joined(plain, element("code", code)) for plain, code in pieces), last)


def joined(*children: str) -> Html:
    """Return the children one after the other, and escape those that are strings."""
    return Html("".join(child if isinstance(child, Html) else escaped(child) for child in children))
