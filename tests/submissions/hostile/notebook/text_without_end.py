"""Strategy: put ten megabytes of statements into the answer cell, all to be parsed. Surface: the size of the answer's own text.

Class: notebook. Unprotected: grader parsed hangs. Level: 5.
Must get 0: a text that is too long for an untouched cell is not parsed by the host; the worker refuses it under its limits.
"""

ANSWER = "04_read_a_graph"


def cells(notebook, name):
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name]



def change(notebook):
    cells(notebook, ANSWER)[0]["source"] = "x = [1]\n" * 1_200_000
