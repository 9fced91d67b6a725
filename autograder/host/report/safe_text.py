"""Make text that a student wrote harmless where it is shown: in a page, in a notebook output, in a terminal.

>>> escaped("<b>hi</b>")
'&lt;b&gt;hi&lt;/b&gt;'
>>> printable("red \\x1b[31m alert")
'red �[31m alert'
"""

import html
import unicodedata

MESSAGE_CHARACTERS = 2_000

# control characters drive a terminal, format characters reorder what is read, surrogates cannot be written
_UNSHOWABLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def printable(text: str, *, limit: int = MESSAGE_CHARACTERS) -> str:
    """`text` with all that a terminal might obey replaced by �, cut to `limit` characters."""
    kept = text if len(text) <= limit else text[: limit - 1] + "…"
    if kept.replace("\n", "").replace("\t", "").isprintable():  # as nearly every text is, and is found so at once
        return kept
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in _UNSHOWABLE else "\ufffd" for c in kept)


def one_line(text: str, *, limit: int = 200) -> str:
    """`text` on a single line, for tables."""
    return printable(" ".join(text[: 4 * limit].split()), limit=limit)


def escaped(text: str, *, limit: int = MESSAGE_CHARACTERS) -> str:
    """`text` for the inside of an HTML element or of a quoted attribute."""
    return html.escape(printable(text, limit=limit), quote=True)
