"""Strategy: carry tens of megabytes of outputs in one line. Surface: outputs, attachments.

Class: notebook. Unprotected: grader page breaks. Level: 5.
Must get 0: outputs are dropped when the notebook is read, and a file of more than 64 MB is not read.
"""

ANSWER = "04_read_a_graph"


def cells(notebook, name):
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name]



def change(notebook):
    for cell in cells(notebook, ANSWER):
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 16_000_000}]
        cell["attachments"] = {"a.png": {"image/png": "eA==" * 2_000_000}}
