"""Strategy: show attached pictures that are missing, are no pictures, or are a page with a script. Surface: attachments of Markdown cells.

Class: notebook. Unprotected: grader pasted breaks. Level: 5.
Must get 0: of attachments only pictures in base 64 are kept, and a link to any other becomes its description.
"""

PAGE = "<script>alert(1)</script>"


def change(notebook):
    attached = {"a.png": {"text/html": PAGE}, "b.png": {"image/png": PAGE}, "c.png": 3, "": [], "d.svg": {"image/svg+xml": PAGE}}
    names = [*attached, "../../gradebook.db", "e" * 10_000, "%00", "f.png\" onerror=\"alert(1)"]
    text = " ".join(f"![x](<attachment:{name}>)" for name in names)
    notebook["cells"].append({"cell_type": "markdown", "source": text, "metadata": {}, "attachments": attached})
