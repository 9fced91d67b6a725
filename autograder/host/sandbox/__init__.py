"""Run student code in isolation: five levels, probed by attacks that must fail, and one worker process at a time.

>>> sandbox = open_sandbox()
>>> with sandbox.start(limits=Limits(wall_s=20.0)) as worker:
...     worker.socket.sendall(request)
"""

from autograder.host.sandbox.compute_device import is_device_name
from autograder.host.sandbox.levels import Level, SandboxError
from autograder.host.sandbox.process import WorkerProcess
from autograder.host.sandbox.resource_limits import Ending, Limits
from autograder.host.sandbox.sandbox import Sandbox
from autograder.host.sandbox.selection import AUTO, describe, open_sandbox

__all__ = [
    "AUTO",
    "Ending",
    "Level",
    "Limits",
    "Sandbox",
    "SandboxError",
    "WorkerProcess",
    "describe",
    "is_device_name",
    "open_sandbox",
]
