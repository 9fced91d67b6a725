"""Strategy: raise an exception whose text ends the process, or never ends. Surface: __str__ and __repr__ of an exception.

Class: result channel. Unprotected: grader report hangs. Level: 5.
Must get 0: the text is made in the worker, under the exercise's time.
"""

import time


class Fights(Exception):
    def __str__(self):
        while True:
            time.sleep(1)

    __repr__ = __str__


def read_graph(rows):
    raise Fights
