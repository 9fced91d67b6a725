"""Strategy: leave what outlives a process for the next worker to find: memory and semaphores of System V, names in the folders that all may write. Surface: what a zygote's children or a user's processes share.

Class: machine. Unprotected: grader process gives way. Level: 4.
Must get 0: a worker has no namespace, user or file system in common with the next, or cannot ask for what they would share.
"""

import ctypes
import os
from pathlib import Path

CREATE, REMOVE = 0o1000 | 0o666, 0  # IPC_CREAT, IPC_RMID


def names(residue):
    return [Path(f"/dev/shm/{residue}"), Path(f"/tmp/{residue}")]


def read_graph(target):
    """What an earlier run has left, and is taken away here; else leave it for a later one."""
    library, found = ctypes.CDLL(None, use_errno=True), []
    key = int(target["residue"], 16) & 0x7FFFFFFF
    kinds = {
        "memory": (library.shmget, lambda number: library.shmctl(number, REMOVE, None)),
        "semaphore": (library.semget, lambda number: library.semctl(number, 0, REMOVE)),
    }
    for what, (get, remove) in kinds.items():
        number = get(key, 1, 0)
        if number >= 0:
            found.append(what)
            remove(number)
        else:
            get(key, 1, CREATE)
    for place in names(target["residue"]):
        try:
            os.mkfifo(place)
        except FileExistsError:
            found.append("a name")
            place.unlink()
        except OSError:
            continue
    return ", ".join(found)
