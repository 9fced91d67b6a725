"""Strategy: begin the answer with a sum of 900 ones, deep attributes and 600 minus signs, which nest without a bracket. Surface: recursive functions on the syntax tree of an answer.

Class: notebook. Unprotected: grader rewritten breaks. Level: 5.
Must get 0: the host counts the levels of a tree without recursion, and calls nothing recursive on a deeper one.
"""

ANSWER = "04_read_a_graph"


def cells(notebook, name):
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name]


def change(notebook):
    deep = ("+".join(["1"] * 900), f"a{'.a' * 800}", f"{'-' * 600}1", f"{'not ' * 900}1")
    body = "".join(f"    {line}\n" for line in deep)
    cells(notebook, ANSWER)[0]["source"] = f"def read_graph(rows):\n{body}    raise NotImplementedError\n"
