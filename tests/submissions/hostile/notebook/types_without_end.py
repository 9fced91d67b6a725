"""Strategy: give copies of the answer cell types of kilobytes, each another one, so that what is noted fills record, page and memory. Surface: the types of cells, in sentences about them.

Class: notebook. Unprotected: grader notes runs its code. Level: 5.
Must get 0: a sentence about a type that the format does not know does not repeat it.
"""

import copy

ANSWER = "04_read_a_graph"


def change(notebook):
    answer = next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == ANSWER)
    answer["source"] = "# nothing"
    for number in range(300):
        cell = copy.deepcopy(answer)
        cell["cell_type"] = f"{number} \ud800 \u001b[2J <script>alert(1)</script>" + "x" * 16_000
        notebook["cells"].append(cell)
