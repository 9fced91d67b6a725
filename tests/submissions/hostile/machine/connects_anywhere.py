"""Strategy: reach a server of the machine: over TCP, by an abstract socket, by name. Surface: sockets.

Class: machine. Unprotected: grader process gives way. Level: 2.
Must get 0: the network namespace is empty, and its abstract sockets are its own.
"""

import socket


def read_graph(target):
    gained = []
    try:
        with socket.create_connection(("127.0.0.1", target["port"]), timeout=1):
            gained.append("TCP")
    except OSError:
        pass
    try:
        with socket.socket(socket.AF_UNIX) as channel:
            channel.connect("\0" + target["abstract"])
            gained.append("an abstract socket")
    except OSError:
        pass
    try:
        with socket.socket(socket.AF_UNIX) as channel:
            channel.connect(target["socket_file"])
            gained.append("a socket file")
    except OSError:
        pass
    return ", ".join(gained)
