"""Strategy: replace what runs a cell, so that every later one succeeds. Surface: InteractiveShell.run_cell.

Class: notebook. Unprotected: grader kernel gives full marks. Level: 5.
Must get 0: nothing of the notebook runs but the answer cell, and that in a worker.
"""

ANSWER = "04_read_a_graph"


def cells(notebook, name):
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name]



TEXT = """
shell = type(get_ipython())
run = shell.run_cell
shell.run_cell = lambda self, text, **options: run(self, "6.0" if "assert" in text else text, **options)

def read_graph(rows):
    return {}
"""


def change(notebook):
    cells(notebook, ANSWER)[0]["source"] = TEXT
