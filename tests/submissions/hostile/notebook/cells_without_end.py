"""Strategy: split the answer into ten thousand cells, to be joined one by one. Surface: the number of cells of one id.

Class: notebook. Unprotected: grader joins hangs. Level: 5.
Must get 0: a notebook of more cells than anybody writes is not read, and cells are joined in one go.
"""

import copy

ANSWER = "04_read_a_graph"


def change(notebook):
    answer = next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == ANSWER)
    answer["source"] = "# " + "x" * 1_000
    notebook["cells"] += [copy.deepcopy(answer) for _ in range(10_000)]
