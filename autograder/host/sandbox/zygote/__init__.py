"""The host's side of the zygote; `autograder/README.md` describes how a worker is forked."""

from autograder.host.sandbox.zygote.forked_worker import ForkedWorker
from autograder.host.sandbox.zygote.pool import Zygote, ZygotePool, make_course, start_unmounted

__all__ = ["ForkedWorker", "Zygote", "ZygotePool", "make_course", "start_unmounted"]
