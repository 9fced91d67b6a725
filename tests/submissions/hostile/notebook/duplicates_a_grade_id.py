"""Strategy: hand in every cell with metadata twice, so that the batch stops at this notebook. Surface: grade_id, which must be unique.

Class: notebook. Unprotected: grader unique breaks. Level: 5.
Must get 0: cells of one id are joined before anything counts them.
"""

ANSWER = "04_read_a_graph"


def cells(notebook, name):
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name]



import copy


def change(notebook):
    notebook["cells"] += copy.deepcopy([c for c in notebook["cells"] if "nbgrader" in c["metadata"]])
