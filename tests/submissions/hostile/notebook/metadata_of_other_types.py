"""Strategy: put lists where objects are expected, numbers where texts are, and cells that are no cells. Surface: every level of the file's structure.

Class: notebook. Unprotected: grader absent breaks. Level: 5.
Must get 0: what has another form than a cell is left out, and the file is read whatever its parts are.
"""

ANSWER = "04_read_a_graph"


def change(notebook):
    notebook |= {"metadata": [], "nbformat": "four", "nbformat_minor": None}
    notebook["cells"][:0] = [7, None, [], "cell", {}, {"metadata": 1}, {"metadata": {"nbgrader": "x"}, "source": {"a": 1}}]
    for cell in notebook["cells"]:
        if isinstance(cell, dict) and isinstance(cell.get("metadata"), dict) and "nbgrader" in cell["metadata"]:
            cell["outputs"] = cell["id"] = cell["attachments"] = 3.5
            cell["metadata"] = {"nbgrader": {"grade_id": [ANSWER], "points": {}, "schema_version": "three"}}
