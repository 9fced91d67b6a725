"""Strategy: make the check cell text and the answer cell a graded one. Surface: cell_type, grade and solution flags.

Class: notebook. Unprotected: grader absent gives full marks. Level: 5.
Must get 0: types and flags are written anew from the gradebook.
"""

ANSWER = "04_read_a_graph"


def cells(notebook, name):
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name]



def change(notebook):
    for cell in cells(notebook, ANSWER + "_check"):
        cell["cell_type"] = "markdown"
        cell["metadata"]["nbgrader"] |= {"grade": False, "solution": True}
    for cell in cells(notebook, ANSWER):
        cell["metadata"]["nbgrader"] |= {"grade": True, "points": "6", "task": None}
