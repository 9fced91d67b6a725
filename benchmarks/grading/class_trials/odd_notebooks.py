"""Odd notebooks: functions that change the content or the bytes of a right hand-in, each in a way drawn at random.

A change draws its sizes and its variant, so that two hand-ins with the same change differ. What is only a nuisance
when it is small is drawn up to the sizes at which parsers, lexers and templates begin to take long.
"""

import base64
import copy
import gzip
import json
import random
from collections.abc import Callable
from typing import Any

Notebook = dict[str, Any]
Change = Callable[[Notebook, random.Random], None]

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(60)).decode()
TEXTS = (
    *(
        "\u202e desrever",
        "a\x00b",
        "\x1b[31mred\x1b]0;title\x07",
        "\ud800 half",
        "\u2028\u2029",
        "\ufeffmark",
        "e\u0301",
    ),
    *(
        "<script>alert(1)</script>",
        "]]><!--",
        "{{ 7*7 }}{% for %}",
        "%s%n{0}",
        "\\input{/etc/passwd}",
        "$" * 999,
        "\f\v\r",
    ),
)
LINKS = (
    *(
        "javascript:alert(1)",
        "vbscript:x",
        "data:text/html,<script>1</script>",
        "file:///etc/passwd",
        "attachment:none.png",
    ),
    *(
        "//",
        "http://[::1",
        "cid:x",
        "../../../gradebook.db",
        "x" * 9_000,
        "jav&#x09;ascript:alert(1)",
        "\u202ehttps://x",
    ),
)
MARKDOWN = (
    "*a",
    "***",
    "<a ",
    "[",
    "[x](",
    "`",
    "> ",
    "- ",
    "|a",
    "\\(",
    "$$",
    "&#",
    "![",
    "<!--",
    "#",
    "~~~\n",
    "\t",
    "1. ",
)


def _cells(notebook: Notebook, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def _answers(notebook: Notebook) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("solution")]


def _cell(source: object, kind: str = "markdown", **more: Any) -> dict[str, Any]:
    made = {
        "cell_type": kind,
        "id": f"c{random.Random(repr(source)).getrandbits(40):x}",
        "metadata": {},
        "source": source,
    }
    return made | ({"outputs": [], "execution_count": None} if kind == "code" else {}) | more


def nested_source(notebook: Notebook, draw: random.Random) -> None:
    """Put an expression of great depth into an answer cell."""
    count = draw.choice((30, 90, 200, 600, 900, 3_000, 9_000))
    deep = draw.choice(
        (
            "+".join(["1"] * count),
            "a" + ".a" * count,
            "-" * count + "1",
            "not " * count + "1",
            "(" * count + ")" * count,
            "lambda: " * count + "1",
            "[" * count + "]" * count,
            "f(" * count + ")" * count,
            " if x else ".join(["1"] * count),
            "@x\n" * count + "def f(): pass",
        )
    )
    cell = draw.choice(_answers(notebook))
    cell["source"] = draw.choice(
        (f"{deep}\n", f"{''.join(cell['source'])}\n{deep}\n", f"def read_table(rows):\n    {deep}\n")
    )


def long_source(notebook: Notebook, draw: random.Random) -> None:
    """Add a code cell on which a lexer takes long."""
    unit = draw.choice(
        (" \n", "\n", "x = 1\n", "'", '"""', "\\", "%", "!", "?", "$", "x" * 99, "\t \n", "#" * 50, "0" * 99)
    )
    notebook["cells"].append(_cell(unit * draw.choice((50, 500, 2_500, 9_900)), "code"))


def long_markdown(notebook: Notebook, draw: random.Random) -> None:
    """Add text on which a parser of Markdown takes long."""
    notebook["cells"].append(_cell(draw.choice(MARKDOWN) * draw.choice((50, 500, 2_500, 9_900))))


def odd_text(notebook: Notebook, draw: random.Random) -> None:
    """Put characters that drive a terminal, a page or a codec into any cell."""
    cell = draw.choice(notebook["cells"])
    cell["source"] = f"{''.join(cell['source'])}\n# {draw.choice(TEXTS)}"


def links(notebook: Notebook, draw: random.Random) -> None:
    """Add links and pictures of any scheme."""
    target = draw.choice(LINKS)
    forms = (f"[a]({target})", f"![a]({target})", f"[a][1]\n\n[1]: {target}", f"<{target}>", f'<img src="{target}">')
    notebook["cells"].insert(0, _cell(draw.choice(forms)))


def attachments(notebook: Notebook, draw: random.Random) -> None:
    """Paste a picture into Markdown, as JupyterLab makes it or not."""
    name = draw.choice(("image.png", "a b.png", "../x.png", "x" * 240, "é.png", ""))
    held: Any = draw.choice(
        (
            {name: {"image/png": PIXEL}},
            {name: {"image/svg+xml": "<svg onload=alert(1)>"}},
            {name: {"image/png": 7}},
            {name: []},
            [],
            {},
        )
    )
    target = name if draw.random() < 0.8 else "another.png"
    notebook["cells"].append(_cell(f"![{name}](attachment:{target})", attachments=held))


def widgets(notebook: Notebook, draw: random.Random) -> None:
    """Leave the state of widgets in the metadata, and a view of one in an output."""
    state: Any = draw.choice(
        ({}, {"state": {}}, {"state": {"a": {"model_name": "X"}}, "version_major": 2, "version_minor": 0}, [], "x")
    )
    kind = "application/vnd.jupyter.widget-state+json"
    notebook["metadata"]["widgets"] = draw.choice(({kind: state}, state, {"other": state}, None))
    view = {"application/vnd.jupyter.widget-view+json": draw.choice(({"model_id": "a"}, {}, "x")), "text/plain": "X()"}
    output = {"output_type": "display_data", "data": view, "metadata": {}}
    draw.choice(_cells(notebook, "code"))["outputs"] = [output]


def outputs(notebook: Notebook, draw: random.Random) -> None:
    """Give a code cell outputs of other forms, types and sizes."""
    cell = draw.choice(_cells(notebook, "code"))
    cell["outputs"] = draw.choice(
        (
            [{"output_type": "stream", "name": "stdout", "text": "x" * draw.choice((10, 10**5, 5 * 10**6))}],
            [{"output_type": "error", "ename": 1, "evalue": None, "traceback": "\x1b[" * 999}],
            [{"output_type": "execute_result", "data": {"text/html": "<script>1</script>"}, "metadata": 0}],
            [{"output_type": "never"}, 1, None, []],
            {"text": "x"},
            [
                {
                    "output_type": "display_data",
                    "data": {"image/png": "not base64", "text/latex": "$" * 999},
                    "metadata": {},
                }
            ],
            [{"output_type": "stream"}] * draw.choice((1, 20_000)),
        )
    )
    cell["execution_count"] = draw.choice((None, -1, "7", 2**70, [1]))


def metadata(notebook: Notebook, draw: random.Random) -> None:
    """Give the notebook metadata that steers pages, lexers and kernels."""
    notebook["metadata"] |= draw.choice(
        (
            {
                "language_info": draw.choice(
                    ({"name": "../../x"}, {"pygments_lexer": 1}, {"name": "python", "pygments_lexer": "nope"}, [])
                )
            },
            {"kernelspec": draw.choice((None, {}, {"name": "x" * 999}, {"language": 7}, []))},
            {"title": "<script>1</script>", "authors": draw.choice(([], [{"name": 1}], "x"))},
            {"autograder": draw.choice((1, {"notes": 7}, {"notes": [None]})), "nbgrader": {}},
            {"celltoolbar": None, "jupytext": {"x": [{}] * 500}, "trusted": True, "x" * 500: 1},
        )
    )
    draw.choice(notebook["cells"])["metadata"] = draw.choice(
        (None, 7, [], {"tags": 1}, {"slideshow": {"slide_type": "skip"}})
    )


def grading_metadata(notebook: Notebook, draw: random.Random) -> None:
    """Change what nbgrader wrote about the cells that it grades."""
    cells = [
        cell for cell in notebook["cells"] if isinstance(cell["metadata"], dict) and "nbgrader" in cell["metadata"]
    ]
    for cell in draw.sample(cells, min(2, len(cells))):
        cell["metadata"]["nbgrader"] |= draw.choice(
            (
                {"schema_version": draw.choice((0, 1, 2, 99, "3", None))},
                {"points": draw.choice((400, -1, "x", float("nan"), None))},
                {"grade": 1, "solution": 1, "locked": "no", "task": []},
                {"grade_id": draw.choice(("", "05_bias_silu_pass", "x" * 500, "a/b", 7, None))},
                {"cell_type": "markdown", "checksum": 0},
            )
        )
        if draw.random() < 0.3:
            notebook["cells"].append(copy.deepcopy(cell))


def cell_forms(notebook: Notebook, draw: random.Random) -> None:
    """Give a cell another type, id or form of source."""
    cell = draw.choice(notebook["cells"])
    cell |= draw.choice(
        (
            {"cell_type": draw.choice(("raw", "heading", "x" * 9_000, 7, None))},
            {"id": draw.choice(("", "x" * 99, "a b", 7, None))},
            {"source": draw.choice((None, 7, {"a": 1}, ["a", 1, None], [[]]))},
            {"collapsed": True, "level": 3, "unknown": {}},
        )
    )


def number_of_cells(notebook: Notebook, draw: random.Random) -> None:
    """Have no cells, or as many as are read, or one more, or some that are none."""
    count = draw.choice((0, 300, 2_000, 2_001))
    if count:
        notebook["cells"] += [_cell(f"cell {number}") for number in range(count - len(notebook["cells"]))]
    else:
        notebook["cells"] = draw.choice(([], [None, 7, "x", []], notebook["cells"][:1], None, {}))


def schema_version(notebook: Notebook, draw: random.Random) -> None:
    """Call the notebook one of another version, or write it as version 3 did."""
    if draw.random() < 0.4:
        for cell in _cells(notebook, "code"):
            cell |= {"input": cell.pop("source"), "language": "python", "prompt_number": 1}
        worksheet = {"cells": notebook.pop("cells"), "metadata": {}}
        notebook |= {"nbformat": 3, "nbformat_minor": 0, "worksheets": [worksheet]}
        return
    notebook["nbformat"] = draw.choice((3, 4, 4, 4, 5, "4", -1, None, 4.5, 2**70))
    notebook["nbformat_minor"] = draw.choice((0, 1, 4, 99, -1, "5", None))


CHANGES: tuple[Change, ...] = (
    *(nested_source, long_source, long_markdown, odd_text, links, attachments, widgets, outputs, metadata),
    *(grading_metadata, cell_forms, number_of_cells, schema_version),
)


def odd_bytes(content: bytes, draw: random.Random) -> bytes:
    """Return the file as somebody could have saved it: cut off, in another encoding, or no notebook at all."""
    text = content.decode("utf-8", "surrogatepass")
    return draw.choice(
        (
            lambda: content[: draw.randrange(len(content))],
            lambda: b"\xef\xbb\xbf" + content,
            lambda: text.encode(draw.choice(("utf-16", "utf-32", "latin-1")), "replace"),
            lambda: content + b"\n<<<<<<< HEAD\n" + content,
            lambda: gzip.compress(content),
            lambda: content.replace(b'"nbformat": 4', b'"nbformat": ' + b"4" * draw.choice((9, 5_000)), 1),
            lambda: b"[" * draw.choice((99, 99_999)),
            lambda: draw.choice(
                (b"", b" \n", b"null", b"[]", b"NaN", b'{"cells": 7}', b"<html>not found</html>", b"\0" * 4096)
            ),
            lambda: content.replace(b'"source":', b'"source": 1, "source":'),
            lambda: bytes(draw.getrandbits(8) for _ in range(3_000)),
            lambda: content.replace(b"null", b"-Infinity"),
        )
    )()


def odd_notebook(right: Notebook, draw: random.Random) -> tuple[bytes, str]:
    """Return the bytes of a hand-in made from `right`, and the names of what was changed in it."""
    notebook, names = copy.deepcopy(right), []
    for change in draw.sample(CHANGES, draw.choice((1, 1, 2, 3))):
        try:
            change(notebook, draw)
        except (AttributeError, IndexError, KeyError, TypeError):
            continue  # an earlier change left nothing that this one could change
        names.append(change.__name__)
    content = json.dumps(notebook, indent=1).encode()
    if draw.random() < 0.15:
        return odd_bytes(content, draw), "odd_bytes"
    return content, " ".join(names)
