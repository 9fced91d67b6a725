"""Submitted notebooks are read as data, and the unreadable ones are refused with a sentence."""

import json
import os

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from autograder.classroom.submission import SubmissionError, read_submission
from autograder.exercises.answer_cells import answers_in
from autograder.host.grading import stubs_in


def cell(grade_id, source, cell_type="code"):
    return {"cell_type": cell_type, "source": source, "metadata": {"nbgrader": {"grade_id": grade_id}}}


def test_the_text_of_answer_cells_is_found_by_exercise():
    notebook = {
        "cells": [
            cell("01_scaled_dot_product", ["a = 1\n", "b = 2"]),
            cell("something_else", "c"),
            {"source": "d"},
            5,
            None,
        ]
    }
    assert answers_in(notebook) == ({"01_scaled_dot_product": "a = 1\nb = 2"}, ())


def test_a_split_cell_is_joined_and_noted():
    answers, notes = answers_in(
        {
            "cells": [
                cell("04_read_a_graph", "a"),
                cell("04_read_a_graph", "b"),
                cell("04_read_a_graph", "c", "markdown"),
            ]
        }
    )
    assert answers == {"04_read_a_graph": "a\nb\nc"}
    assert len(notes) == 2
    assert "joined" in notes[0]


PASTED = "def f(x):\n    y = x\n\n    return y"


@pytest.mark.parametrize(
    "pasted",
    [
        "\n" + "\n".join(f"    {line}" for line in PASTED.splitlines()),
        ">>> " + PASTED.replace("\n", "\n... "),
        "In [3]: " + PASTED.replace("\n", "\n   ...: "),
        PASTED,
    ],
)
def test_a_paste_is_graded_as_the_notebook_ran_it(pasted):
    assert TransformerManager().transform_cell(pasted) == f"{PASTED}\n"
    assert answers_in({"cells": [cell("04_read_a_graph", pasted)]})[0] == {"04_read_a_graph": PASTED}


QUOTED = 'def f(x):\n    """Halve.\n\n    >>> f(2)\n    ... 1\n    """\n    return x / 2'


@pytest.mark.parametrize(
    "pasted",
    [
        "# my answer\n>>> def f(x):\n...     return x",
        "import math\n\n\n    >>> def f(x):\n    ...     return x\n    >>> y = 1",
        ">>> x = [\n...   1,\n>>> ]",
        "# mine\nIn [12]: def f(x):\n    ...:     return x",
        "[ins] In [3]: def f(x):\n         ...:     return x",
        "[nav] In [3]: y = 1\n",
        " In [3]: y = 1\n",
        "# one\n# two\nIn [3]: y = 1\n",
        QUOTED,
        "\n".join(f">>> {line}" for line in QUOTED.splitlines()),
        f"{QUOTED}\n>>> y = f(1)",
        "x: list = ...\n...\n",
        "a = 1\n>>>b = 2\n>>>\n",
        's = """\n>>> kept\n"""\nt = ">>> kept"\n',
        "    a = 1\n    b = 2\n\n\n",
        "",
        " \n\t\n",
    ],
)
def test_prompts_are_removed_where_the_notebook_removes_them(pasted):
    answer = answers_in({"cells": [cell("04_read_a_graph", pasted)]})[0]["04_read_a_graph"]
    manager = TransformerManager()
    manager.line_transforms, manager.token_transformers = [], []
    assert answer.rstrip("\n") == manager.transform_cell(pasted).rstrip("\n")


@pytest.mark.parametrize(
    "odd", [{"cells": [{"metadata": []}]}, {"cells": [{"metadata": {"nbgrader": "x"}}]}, {"cells": [cell(["x"], 1)]}]
)
def test_metadata_of_any_form_is_no_answer(odd):
    assert answers_in(odd) == ({}, ())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not json", "not JSON"),
        (b"[]", "no list of cells"),
        (b'{"cells": 3}', "no list of cells"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused(tmp_path, content, words):
    path = tmp_path / "05_fx_rewrite.ipynb"
    path.write_bytes(content)
    with pytest.raises(SubmissionError, match=words):
        read_submission(path)


def test_links_pipes_folders_and_missing_files_are_refused(tmp_path):
    (tmp_path / "secret").write_text(json.dumps({"cells": []}))
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "folder.ipynb").mkdir()
    for name in ("link", "pipe", "folder", "missing"):
        with pytest.raises(SubmissionError):
            read_submission(tmp_path / f"{name}.ipynb")


STUB = "def f(x):\n    raise NotImplementedError\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("# only a comment\n", True),
        ('def f(x):\n    """Doc."""\n    raise NotImplementedError("Write your answer here.")\n', True),
        ("import torch\ndef f(x):\n    raise NotImplementedError\n", True),
        ("def given(x):\n    return x + 1\n\ndef f(x):\n    raise NotImplementedError('Write it.')\n", True),
        ("def f(x):\n    return x\n", False),
        ("def f(x):\n    if x: return 1\n    raise NotImplementedError\n", False),
        ("class f(M):\n    def __init__(self):\n        super().__init__()\n        raise NotImplementedError\n", True),
        ("class f(M):\n    def __init__(self):\n        super().__init__()\n        self.x = 1\n", False),
        ("class f(Given):\n    'All is inherited.'\n", False),
        ("class f(Given):\n    def __init__(self):\n        super().__init__()\n", False),
        ("def f(x):\n    pass\n", False),
        (f"{STUB}f = mine\n", False),
        (f"{STUB}for f in [mine]: pass\n", False),
        (f"{STUB}from torch import relu as f\n", False),
        ("class f(M):\n    def forward(self, x):\n        raise NotImplementedError\nf.forward = mine\n", False),
        (f"{STUB}@f.register\ndef _(x: int):\n    return x\n", False),
        (f"f = mine\n{STUB}", True),
        (f"{STUB}print(f(1))\n", True),
        (f"{STUB}if True:\n    def f(x):\n        return x\n", False),
        (f"{STUB}async def f(x):\n    return x\n", False),
        (f"{STUB}@patch_to(f)\ndef _(x):\n    return x\n", False),
        (f"{STUB}setattr(f, 'forward', mine)\n", False),
        (f"{STUB}globals()['f'] = mine\n", False),
        ("def f(:\n", False),
        ("class f(M):\n    def __init__(self):\n        super().__init__(0x" + "f" * 5_000 + ")\n", False),
        (f"def f():\n    {'+'.join(['1'] * 900)}\n    raise NotImplementedError\n", False),
        (f"def f():\n    a{'.a' * 800}\n    raise NotImplementedError\n", False),
        (f"def f():\n    {'-' * 600}1\n    raise NotImplementedError\n", False),
        (f"def f():\n    {'not ' * 900}1\n    raise NotImplementedError\n", False),
    ],
    ids=range(30),
)
def test_an_untouched_answer_is_recognised_without_running_it(text, expected):
    assert stubs_in(text).leave_unanswered("f") is expected
