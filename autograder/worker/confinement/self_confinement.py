"""The steps of confinement in their only possible order: each step removes a right that an earlier step needs."""

import fcntl
import os
import resource
import tempfile
from collections.abc import Mapping

from autograder.protocol.orders import Orders
from autograder.worker.confinement import kernel, landlock, namespaces, signal_filter

CHANNEL = 3


def confine(orders: Orders) -> None:
    """Give up everything that `orders` does not grant; the process must have one thread."""
    os.environ.clear()
    os.environ.update(orders.variables)
    tempfile.tempdir = None  # computed again from the new variables
    if orders.mounts:
        namespaces.mount_worker_view(orders.mounts)
    os.chdir(orders.home)
    lower_limits(orders.rlimits)
    if not orders.confined:
        return
    rules = landlock.ruleset(orders.files) if orders.files else None
    kernel.give_up_capabilities()
    if orders.uid is not None:
        os.setgroups([])
        os.setresgid(orders.uid, orders.uid, orders.uid)
        os.setresuid(orders.uid, orders.uid, orders.uid)
    kernel.empty_capabilities()
    # After the change of user, this process may no longer read its own entries in /proc.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if rules is not None:
        landlock.restrict(rules)
    if orders.signal_calls:
        kernel.filter_system_calls(signal_filter.program(os.getpid(), orders.signal_calls))
    kernel.filter_system_calls(orders.seccomp)


def keep_descriptors(channel: int, output: int, *others: int) -> list[int]:
    """Make `channel` descriptor 3, `output` 1 and 2, /dev/null 0; close all others except `others`.

    Return the new numbers of `others`, from 4 on.
    """
    kept = [channel, *others]
    # Duplicated to high numbers first, so that no descriptor is overwritten while it is still needed.
    high = [os.dup(output), *(os.dup(each) for each in kept)]
    high = [_above(each, CHANNEL + len(kept)) for each in high]
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    for number in (1, 2):
        os.dup2(high[0], number)
    for place, number in enumerate(high[1:]):
        os.dup2(number, CHANNEL + place, inheritable=False)
    os.closerange(CHANNEL + len(kept), 1 << 20)
    return [CHANNEL + 1 + place for place in range(len(others))]


def lower_limits(rlimits: Mapping[str, int]) -> None:
    """Set soft and hard limits; a limit that is already lower stays."""
    for name, value in rlimits.items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (lowest, lowest))


def _above(descriptor: int, lowest: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
