"""Make a student's text harmless where it is shown: in a page, a notebook output or a terminal.

>>> escaped("<b>hi</b>")
'&lt;b&gt;hi&lt;/b&gt;'
>>> printable("red \\x1b[31m alert")
'red �[31m alert'
"""

import html
import unicodedata

MESSAGE_CHARACTERS = 2_000

# control characters drive a terminal, format characters reorder text, surrogates cannot be written
_UNSHOWABLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def printable(text: str, *, limit: int = MESSAGE_CHARACTERS) -> str:
    """Return `text` cut to `limit` characters, with everything that a terminal might obey replaced by �."""
    kept = text if len(text) <= limit else text[: limit - 1] + "…"
    if kept.replace("\n", "").replace("\t", "").isprintable():  # nearly every text is, and this test is quick
        return kept
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in _UNSHOWABLE else "\ufffd" for c in kept)


def one_line(text: str, *, limit: int = 200) -> str:
    """Return `text` on a single line, for tables."""
    return printable(" ".join(text[: 4 * limit].split()), limit=limit)


def escaped(text: str, *, limit: int = MESSAGE_CHARACTERS) -> str:
    """Return `text` escaped for the inside of an HTML element or of a quoted attribute."""
    return html.escape(printable(text, limit=limit), quote=True)
