"""Strategy: write more than there is room for, half of it in files that are unlinked already. Surface: /tmp, /dev/shm, the working directory.

Class: machine. Unprotected: grader process gives way. Level: 2.
Must get 0: what can be written is a memory file system of bounded size, gone with the worker.
"""

import tempfile
import time


def read_graph(target):
    files = []
    try:
        for number in range(4):
            files.append((tempfile.TemporaryFile if number % 2 else tempfile.NamedTemporaryFile)())
            files[-1].write(b"x" * (target["tmp_bytes"] // 2))
            files[-1].flush()
        time.sleep(0.7)  # long enough for a watchdog to look
    except OSError:
        return ""
    finally:
        for file in files:
            try:
                file.close()
            except OSError:
                pass
    return f"{2 * target['tmp_bytes']} bytes"
