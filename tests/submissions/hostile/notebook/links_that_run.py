"""Strategy: write links and pictures in Markdown whose address is a script, a page or a file. Surface: addresses in feedback and in the manual view.

Class: notebook. Unprotected: grader linked runs its code. Level: 5.
Must get 0: addresses have a scheme of a list, http, https or mailto, or lead to a place of the page; others become text.
"""

SCRIPT = "javascript:alert(document.domain)"
LINKS = (
    f"[click me]({SCRIPT})",
    f"[click me][far]\n\n[far]: {SCRIPT}",
    "[click me](vbscript:msgbox(1))",
    "[click me](data:text/html,<script>alert(1)</script>)",
    f"![picture]({SCRIPT})",
    "[click me](&#106;avascript:alert(1)) [click me](java&Tab;script:alert(1)) [click me](//elsewhere.example)",
    r"$\text{<img src=x onerror=alert(1)>}$ $\href{javascript:alert(1)}{x}$",
    "```mermaid\n<img src=x onerror=alert(1)>\n```",
)


def change(notebook):
    notebook["cells"] += [{"cell_type": "markdown", "source": text, "metadata": {}} for text in LINKS]
