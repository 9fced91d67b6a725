"""Strategy: delete the check cell, so that nothing is ever wrong. Surface: cells that are missing.

Class: notebook. Unprotected: grader absent gives full marks. Level: 5.
Must get 0: a missing check cell is put back, and marks come from the host.
"""

ANSWER = "04_read_a_graph"


def cells(notebook, name):
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name]



def change(notebook):
    notebook["cells"] = [c for c in notebook["cells"] if not c["metadata"].get("nbgrader", {}).get("grade")]
