"""Build HTML in which escaping cannot be forgotten: plain strings are escaped, only `Html` stays as it is.

>>> element("p", "1 < 2 ", element("b", "yes"), style="color:red")
Html('<p style="color:red">1 &lt; 2 <b>yes</b></p>')
"""

from autograder.host.report.safe_text import escaped


class Html(str):
    """Text that is HTML already; only `element` and `joined` make it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Html({super().__repr__()})"


def element(tag: str, *children: str, **attributes: str) -> Html:
    """Return one element with its children, of which strings are escaped; `class_` is the attribute `class`.

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
    """Return the children one after the other, of which strings are escaped."""
    return Html("".join(child if isinstance(child, Html) else escaped(child) for child in children))
