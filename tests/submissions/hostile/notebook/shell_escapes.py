"""Strategy: write the answer in the notebook's own language: a shell command, a line magic, a cell magic. Surface: what IPython makes of a cell before Python sees it.

Class: notebook. Unprotected: grader kernel runs its code. Level: 5.
Must get 0: the text of an answer is compiled as Python, by nothing that knows magics.
"""

ANSWER = "04_read_a_graph"
TEXT = """!touch "$FORGED"
%config InteractiveShell.ast_node_interactivity = "all"
get_ipython().system('touch "$FORGED"')
def read_graph(rows):
    return {}
"""


def change(notebook):
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == ANSWER:
            cell["source"] = TEXT
