"""Strategy: carry answer cells of exercises that are not in this notebook, under ids of other things. Surface: grade_id: other exercises, objects, numbers.

Class: notebook. Unprotected: grader unique breaks. Level: 5.
Must get 0: an id that is no exercise of this notebook is noted and dropped.
"""

def change(notebook):
    for name in ("05_bias_silu_pass", ["04_read_a_graph"], {"a": 1}, 7, "../../x", ""):
        metadata = {"nbgrader": {"grade_id": name, "grade": True, "points": 1e999, "schema_version": 3, "solution": True}}
        notebook["cells"].append({"cell_type": "code", "source": "6.0", "metadata": metadata, "outputs": [], "execution_count": None})
    notebook["cells"] += [None, 7, {"cell_type": 9}, {"metadata": []}]
