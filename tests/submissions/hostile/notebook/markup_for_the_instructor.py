"""Strategy: put HTML and script where the instructor will look: outputs, Markdown, names, links. Surface: text/html, Markdown, metadata, javascript: links.

Class: notebook. Unprotected: grader page runs its code. Level: 5.
Must get 0: outputs are dropped, Markdown is sanitised before our own HTML is added, and pages show HTML in it as text.
"""

ANSWER = "04_read_a_graph"


def cells(notebook, name):
    return [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name]



SCRIPT = "<script>document.title = 'owned'</script><img src=x onerror=alert(1)><a href='javascript:alert(1)'>x</a>"


def change(notebook):
    data = {"text/html": SCRIPT, "text/plain": "6.0", "application/javascript": "alert(1)", "image/svg+xml": f"<svg>{SCRIPT}</svg>"}
    notebook["metadata"]["title"] = SCRIPT
    notebook["cells"].insert(0, {"cell_type": "markdown", "source": SCRIPT, "metadata": {"tags": [SCRIPT]}})
    for cell in cells(notebook, ANSWER + "_check"):
        cell["outputs"] = [{"output_type": "execute_result", "metadata": {}, "execution_count": 1, "data": data}]
