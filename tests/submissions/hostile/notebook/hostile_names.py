"""Strategy: give cells, kernels and languages names with control characters, halves of surrogate pairs and a hundred thousand letters. Surface: metadata of notebook and cells.

Class: notebook. Unprotected: grader page runs its code. Level: 5.
Must get 0: of each cell only type, text and grade id are read; what is shown is made printable and escaped.
"""

ANSWER = "04_read_a_graph"


def cells(notebook, name):
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name]



def change(notebook):
    name = "\u001b[2J\ud800\u202e<script>alert(1)</script>" + "x" * 100_000
    notebook["metadata"] |= {"kernelspec": {"name": name, "display_name": name, "language": name}, "title": name, "authors": [{"name": name}]}
    for cell in notebook["cells"]:
        cell["id"] = cell["metadata"]["name"] = name
        cell["metadata"].setdefault("tags", []).append(name)
