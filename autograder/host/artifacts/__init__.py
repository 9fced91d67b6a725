"""Graphs that came from a worker: checked as data, rebuilt from allowed operators, never trusted."""

from autograder.host.artifacts.artifact import Artifact, ArtifactRefusedError, dead_calls, read_artifact

__all__ = ["Artifact", "ArtifactRefusedError", "dead_calls", "read_artifact"]
