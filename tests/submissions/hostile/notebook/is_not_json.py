"""Strategy: hand in what is no JSON: a merge conflict in a foreign encoding. Surface: the file itself.

Class: notebook. Unprotected: grader unique breaks. Level: 5.
Must get 0: what cannot be read is graded as an empty notebook, with the reason, and stands in gradebook and report.
"""

def change(notebook):
    return b"<<<<<<< HEAD\n{\xe9\xff" + b"[" * 100_000
