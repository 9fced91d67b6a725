"""Strategy: write a single file above the limit for one file, and ignore the signal that ends it. Surface: open, SIGXFSZ.

Class: machine. Unprotected: grader process gives way. Level: 5.
Must get 0: the size of a file is limited.
"""

import signal
import tempfile
import time


def read_graph(target):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with tempfile.TemporaryFile() as file:
        file.write(bytes(target["file_bytes"] + 1))
        file.flush()
        time.sleep(0.7)  # long enough for a watchdog to look
    return f"{target['file_bytes'] + 1} bytes"
