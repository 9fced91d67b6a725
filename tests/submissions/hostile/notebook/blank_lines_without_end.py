"""Strategy: write thousands of blank lines, on which a pattern that colours code takes time squared, into many cells. Surface: the time in which feedback is made.

Class: notebook. Unprotected: grader coloured hangs. Level: 5.
Must get 0: each cell is typeset in a process with a limit of processor time, and each page has a limit for all its cells.
"""


def change(notebook):
    for text in (" \n" * 9_900, "*a" * 9_900):
        for number in range(20):
            cell = {"cell_type": "code", "source": f"{text}{number}", "metadata": {}, "outputs": [], "execution_count": None}
            notebook["cells"].append(cell)
