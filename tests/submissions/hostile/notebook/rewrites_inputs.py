"""Strategy: rewrite the text of the check cell before it runs. Surface: get_ipython().input_transformers_cleanup.

Class: notebook. Unprotected: grader kernel gives full marks. Level: 5.
Must get 0: nothing of the notebook runs but the answer cell, and that in a worker.
"""

ANSWER = "04_read_a_graph"


def cells(notebook, name):
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name]



TEXT = """
get_ipython().input_transformers_cleanup.append(lambda lines: ["6.0"] if any("assert" in l for l in lines) else lines)

def read_graph(rows):
    return {}
"""


def change(notebook):
    cells(notebook, ANSWER)[0]["source"] = TEXT
