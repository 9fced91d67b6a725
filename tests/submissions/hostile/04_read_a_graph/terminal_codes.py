"""Strategy: raise an exception whose class and text drive the terminal or the page in which they are shown. Surface: ANSI escapes and HTML in names and messages.

Class: result channel. Unprotected: grader report runs its code. Level: 5.
Must get 0: what a student wrote is shown with control characters replaced, and escaped in pages.
"""

def read_graph(rows):
    raise type("Error\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>", (Exception,), {})("\x1b[31m<img src=x onerror=alert(1)>\u202e" * 20)
