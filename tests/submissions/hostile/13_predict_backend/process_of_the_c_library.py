"""Strategy: fork by the C library, which no audit event shows, and let a PyTorch from which nothing is withdrawn make the calls. Surface: processes that the worker may start.

Class: answer theft. Unprotected: grader exemplary gives full marks. Level: 5.
Must get 0: a worker that answers questions starts no process.
"""

# The file tests/submissions/hostile/13_predict_backend/another_process.py of this repository stands here.

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
started = []


def predict_backend(call):
    if not started:
        asked, answered = os.pipe(), os.pipe()
        pid = libc.fork()
        if pid == 0:
            os.dup2(asked[0], 0)
            os.dup2(answered[1], 1)
            os.execv(sys.executable, [sys.executable, "-c", CODE])
        if pid < 0:
            raise RuntimeError("fork " + os.strerror(ctypes.get_errno()))
        os.close(answered[1])
        started.append(os.fdopen(asked[1], "w"))
        started.append(os.fdopen(answered[0]))
    started[0].write(json.dumps(call) + "\n")
    started[0].flush()
    return started[1].readline().strip()
