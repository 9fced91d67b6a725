"""What a log records of a kernel's accesses to memory, and the counts of one tensor.

Elements are numbered row by row, whatever the strides of their tensor are; counts are numbers of elements.
"""

from dataclasses import dataclass

from course_lib.kernel_programs.races import Action, Numbers


@dataclass(frozen=True)
class Access:
    """What one load or store of one program did to one tensor."""

    launch: int
    """The number of the launch, from 0."""
    program: int
    """The number of the program in its launch, the last axis of the grid counted first."""
    action: Action
    tensor: str
    elements: Numbers
    """The numbers of the elements, counted row by row whatever the strides are."""
    line: int
    """The line of the kernel's text."""


@dataclass(frozen=True)
class Stray:
    """Elements outside of every named tensor that one load or store meant."""

    launch: int
    program: int
    action: Action
    count: int
    line: int
    nearest: str
    """The named tensor that begins last before the first of them; empty if there is none."""
    beyond: int
    """The number of elements between the first element of that tensor and the first of these addresses."""


@dataclass(frozen=True)
class Traffic:
    """How often elements of one tensor were read and written, and how many different ones."""

    tensor: str
    elements: int
    loads: int
    loaded: int
    """Different elements that were loaded."""
    stores: int
    stored: int
    """Different elements that were stored."""
    atomics: int

    @property
    def loads_per_element(self) -> float:
        """Return how often an element was loaded, on average."""
        return self.loads / max(1, self.elements)

    @property
    def stores_per_element(self) -> float:
        """Return how often an element was stored, on average."""
        return self.stores / max(1, self.elements)
