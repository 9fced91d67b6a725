"""The requests to run checked Triton kernels, and the reply: what they returned and which elements they used."""

from dataclasses import dataclass
from typing import Literal

from autograder.protocol.contract import Count, Done, Request
from autograder.protocol.requests.answers import Arguments
from autograder.protocol.requests.loads import Part


@dataclass(frozen=True)
class LoadKernels(Request[Done]):
    """Run texts of Triton kernels and their launchers, which the host has checked, and serve `RunKernels`."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class LoadTimedKernels(Request[Done]):
    """Run such texts for Triton's compiler, and serve timed rounds of one launcher.

    `arguments` are those of each call; their tensors are the inputs of a problem.
    """

    parts: tuple[Part, ...]
    launcher: str
    arguments: Arguments


@dataclass(frozen=True)
class OperandTraffic:
    """How often elements of one tensor of a run were read and written; `loaded` and `stored` are different elements."""

    name: str
    role: Literal["input", "output", "scratch"]
    elements: int
    loads: int
    loaded: int
    stores: int
    stored: int
    atomics: int


@dataclass(frozen=True)
class KernelLaunch:
    """One launch: the name of the kernel, its grid, and how many different elements each program loaded and stored."""

    kernel: str
    grid: tuple[int, int, int]
    elements: int
    """The sum over all programs."""
    busiest: int
    """The different elements that one program loaded and stored, the one with the most."""
    accesses: int
    """How often a program loaded or stored a block, or one element; one without a true mask does not count."""


@dataclass(frozen=True)
class StrayAccess:
    """An access outside of every tensor; it was not carried out."""

    action: Literal["load", "store", "atomic"]
    count: int
    line: int
    nearest: str
    """The tensor that begins last before it; empty if there is none."""
    beyond: int
    """The elements between that tensor's first element and this address."""


@dataclass(frozen=True)
class SharedElement:
    """An element that one program writes and another program of the same launch touches."""

    launch: int
    operand: str
    element: int
    programs: tuple[int, int]
    action: Literal["load", "store", "atomic"]


@dataclass(frozen=True)
class KernelsRun:
    """What a launcher returned and what its kernels did; the tensors are the returned ones."""

    is_tuple: bool
    outputs: tuple[Count, ...]
    """For each returned tensor, the number of its operand."""
    operands: tuple[OperandTraffic, ...]
    """The tensors of the call in order, then those that the launcher made."""
    launches: tuple[KernelLaunch, ...]
    strays: tuple[StrayAccess, ...]
    conflicts: tuple[SharedElement, ...]
    widest: int
    """The elements of the largest block that was loaded or stored at once, those under a false mask included."""
    live: int
    """The most elements of all blocks that a program kept at once, pointers and masks included."""
    undefined: tuple[Count, ...]
    """The lines of masked loads without `other=` that left lanes undefined."""
    races: tuple[SharedElement, ...]
    """Accesses whose values depend on the order of programs, and were spoilt."""
    uncompiled: Count
    """Launches that no compiler saw, as there is none on this machine; where there is one, it took all launches."""


@dataclass(frozen=True)
class RunKernels(Request[KernelsRun]):
    """Call a launcher once, in Triton's interpreter, and record every access to memory."""

    launcher: str
    arguments: Arguments
    zero_at: tuple[Count, ...]
    """The lines of masked loads whose undefined lanes hold 0 in this run; those of other lines spoil results."""
