"""Strategy: hold millions of empty objects, of which each takes twenty times as much memory as text. Surface: the widgets that a notebook may carry in its metadata.

Class: notebook. Unprotected: grader roomy breaks. Level: 5.
Must get 0: brackets and commas outside of texts are counted before the file is parsed, and are limited.
"""

import json


def change(notebook):
    text = json.dumps({**notebook, "metadata": {"widgets": "HERE"}}).encode()
    return text.replace(b'"HERE"', b"[" + b"{}," * 1_505_000 + b"0]")
