"""The resources of one worker on this machine: a user, a control group, a private folder and memory."""

from autograder.host.sandbox.resources.cgroup import Group, Hierarchy, find_hierarchy
from autograder.host.sandbox.resources.worker_resources import Resources, ThrowawayUser

__all__ = ["Group", "Hierarchy", "Resources", "ThrowawayUser", "find_hierarchy"]
