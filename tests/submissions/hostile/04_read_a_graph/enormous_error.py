"""Strategy: raise errors of a hundred megabytes of text. Surface: the message of an exception, the line of source that is quoted.

Class: result channel. Unprotected: grader report breaks. Level: 5.
Must get 0: the worker cuts messages, the host bounds what it reads, and cuts again.
"""

TEXT = "\ud800" * 50_000_000


def read_graph(rows):
    raise ValueError(TEXT)
