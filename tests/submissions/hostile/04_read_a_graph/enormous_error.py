"""Strategy: raise an error of a gigabyte of text. Surface: the message of an exception, the line of source that is quoted.

Class: result channel. Unprotected: grader report breaks. Level: 5.
Must get 0: the worker cuts messages, the host bounds what it reads, and cuts again.
"""

def read_graph(rows):
    raise ValueError("\ud800" * 300_000_000)
