"""Passes that run inside Inductor: what each hook sees, and graphs for the pattern matcher."""

from course_lib.inductor_passes.hook_graphs import HOOKS, graphs_at_hooks
from course_lib.inductor_passes.loose_bias_gelu import fuse_loosely
from course_lib.inductor_passes.matcher_graphs import calls_of, calls_of_chain, chain_of, decomposed, with_fake_values

__all__ = [
    "HOOKS",
    "calls_of",
    "calls_of_chain",
    "chain_of",
    "decomposed",
    "fuse_loosely",
    "graphs_at_hooks",
    "with_fake_values",
]
