"""Simulate `torch.accelerator.Graph` on CPU tensors: capture launches with their addresses, and replay them there.

A replay runs no Python of the program. It starts the same operators, on the same storages, with the same numbers. So
every silent error of a real graph happens here as well. What a device refuses during a capture raises a named error.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.errors import LaunchError
from course_lib.launches.launch_record import (
    Launch,
    address_of,
    described,
    reads_on_host,
    reserves,
    starts_nothing,
    tensors_in,
    written_by,
)

CaptureErrorMode = Literal["default", "global", "thread_local", "relaxed"]


class HostReadError(LaunchError):
    """The host asked for a value while it captured, such as by `.item()` or a branch on a tensor."""


class ColdStartError(LaunchError):
    """An operator ran for the first time during a capture, so that it would have to load or allocate."""


class RandomStateError(LaunchError):
    """An operator drew from a generator that the graph does not know."""


class GraphStateError(LaunchError):
    """Capture and replay were called in an order that makes no sense."""


@dataclass(frozen=True)
class _Step:
    """A launch that can be started again: results go where they went during the capture."""

    func: Any
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    results: tuple[torch.Tensor, ...]
    """Those that are new memory; what is written in place is among the arguments."""

    def run(self) -> None:
        found = self.func(*self.args, **self.options)
        if self.results:
            for kept, new in zip(self.results, tensors_in(found), strict=True):
                kept.copy_(new)


_warm: set[str] = set()  # the operators that ran in a `warm_up`, as a device's libraries stay loaded
_pools = count(1)
_capturing: list["Graph"] = []


class _WarmUp(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        _warm.add(str(func))
        return func(*args, **(kwargs or {}))


@contextmanager
def warm_up() -> Iterator[None]:
    """Run a program eagerly before its capture, so that libraries load and lazy state is allocated.

    On a device this is a block `with torch.Stream():` with a few calls of the program.
    """
    with _WarmUp():
        yield


def is_capturing() -> bool:
    """Return whether a capture is under way, as `torch.cuda.is_current_stream_capturing` does.

    >>> is_capturing()
    False
    """
    return bool(_capturing)


class _Capture(TorchDispatchMode):
    def __init__(self, graph: "Graph") -> None:
        super().__init__()
        self._graph = graph

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        _refuse(func, args, options)
        self._graph._save(written_by(func, args, options))
        result = func(*args, **options)
        self._graph._add(func, args, options, result)
        return result


class Graph:
    """Capture launches and replay them, with the interface of `torch.accelerator.Graph`.

    >>> x = torch.ones(2)
    >>> with warm_up():
    ...     out = x * 2
    >>> graph = Graph()
    >>> with graph:
    ...     out = x * 2
    >>> x = x.fill_(5)
    >>> graph.replay()
    >>> out
    tensor([10., 10.])

    As on a device, a capture computes nothing: what it writes in place keeps its value, and its results hold no numbers
    before the first replay (here NaN).
    Methods and options are those of PyTorch's class; `keep_graph` and `capture_error_mode` change nothing in the
    simulator. Raises `HostReadError`, `ColdStartError` and `RandomStateError` during a capture, `GraphStateError` for a
    wrong order. All are of the class RuntimeError, which PyTorch raises.
    """

    def __init__(
        self,
        keep_graph: bool = False,
        *,
        pool: tuple[int, int] | None = None,
        capture_error_mode: CaptureErrorMode = "default",
    ) -> None:
        self.keep_graph, self.graph_pool, self.capture_error_mode = keep_graph, pool, capture_error_mode
        self._own_pool = (0, next(_pools))
        self._mode: _Capture | None = None
        self._debugs = False
        self.reset()

    def capture_begin(self) -> None:
        """Record every launch from here to `capture_end`."""
        if _capturing:
            raise GraphStateError("A capture is under way. Call its capture_end first, then begin another.")
        if self._captured:
            raise GraphStateError("This graph holds a capture. Call reset() first, or make another Graph.")
        self._mode, self._random_state = _Capture(self), torch.get_rng_state()
        self._mode.__enter__()
        _capturing.append(self)

    def capture_end(self) -> None:
        """Stop to record; the graph can be replayed now."""
        self._stop()
        self._captured = True

    def instantiate(self) -> None:
        """Make the graph ready to replay, as a device does after a capture; the simulator has nothing to build."""
        self._require_capture("instantiate")

    def replay(self) -> None:
        """Start the captured launches again, on the same memory."""
        self._require_capture("replay")
        with torch.no_grad():
            for step in self._steps:
                step.run()

    def reset(self) -> None:
        """Forget the capture, and the memory that it kept."""
        self._steps: list[_Step] = []
        self._alive: list[torch.Tensor] = []
        self._before: dict[int, tuple[torch.Tensor, torch.UntypedStorage]] = {}
        self.launches: tuple[Launch, ...] = ()
        self._captured = False

    def pool(self) -> tuple[int, int]:
        """Return the token of the graph's memory pool; another graph takes it as `pool`."""
        return self.graph_pool or self._own_pool

    def enable_debug_mode(self) -> None:
        """Allow `debug_dump`."""
        self._debugs = True

    def debug_dump(self, path: str) -> None:
        """Write the launches to a file for Graphviz, with an arrow where one reads what another wrote."""
        self._require_capture("dump")
        if not self._debugs:
            raise GraphStateError(
                "debug_dump needs a graph in debug mode. Call enable_debug_mode() before the capture."
            )
        lines, writers = [], dict[int, int]()
        for number, launch in enumerate(self.launches):
            lines.append(f'  {number} [label="{launch.operator}"];')
            lines += [
                f"  {writer} -> {number};" for writer in sorted({writers[a] for a in launch.reads if a in writers})
            ]
            writers |= dict.fromkeys(launch.writes, number)
        Path(path).write_text("\n".join(["digraph launches {", *lines, "}", ""]))

    def reads(self, tensor: torch.Tensor) -> bool:
        """Return whether a replay reads the memory of this tensor."""
        return any(address_of(tensor) in launch.reads for launch in self.launches)

    def writes(self, tensor: torch.Tensor) -> bool:
        """Return whether a replay writes the memory of this tensor."""
        return any(address_of(tensor) in launch.writes for launch in self.launches)

    def __enter__(self) -> None:  # PyTorch's class returns None, too
        self.capture_begin()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop()
        if kind is None:
            self._captured = True
        else:
            self.reset()  # a capture that failed cannot be replayed

    def _require_capture(self, verb: str) -> None:
        if not self._captured:
            raise GraphStateError(f"This graph holds no finished capture. Capture a program first, then {verb} it.")

    def _stop(self) -> None:
        if self._mode is None:
            raise GraphStateError("capture_end without capture_begin. Begin a capture first.")
        self._mode.__exit__(None, None, None)
        self._mode = None
        self._undo()
        _capturing.remove(self)

    def _undo(self) -> None:
        """Leave memory as a device would: a capture computes nothing, so results hold no numbers yet."""
        torch.set_rng_state(self._random_state)
        for tensor, saved in self._before.values():
            tensor.untyped_storage().copy_(saved)
        for result in (result for step in self._steps for result in step.results):
            if result.is_floating_point():
                result.fill_(torch.nan)
        self._before = {}

    def _save(self, tensors: Sequence[torch.Tensor]) -> None:
        """Keep what memory from before the capture holds, before an operator writes it."""
        made = {address_of(result) for step in self._steps for result in step.results}
        for tensor in tensors:
            if address_of(tensor) not in made:
                self._before.setdefault(address_of(tensor), (tensor, tensor.untyped_storage().clone()))

    def _add(self, func: Any, args: Sequence[Any], options: Mapping[str, Any], result: Any) -> None:
        made = tensors_in(result)
        self._alive += [*tensors_in((args, options)), *made]
        if starts_nothing(func, args, options, result):
            return
        in_place = bool(written_by(func, args, options))
        results = () if in_place else tuple(tensor.data for tensor in made)  # `data` has no version to count
        self._steps.append(_Step(func, tuple(args), options, results))
        self.launches += (described(func, args, options, result),)


def _refuse(func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Raise for what a device refuses while it captures."""
    if reads_on_host(func):
        raise HostReadError(
            f"{func} needs a value on the host during a capture, when nothing is computed yet. "
            "Keep the value in a tensor, and read it after the replay."
        )
    if any(isinstance(each, torch.Generator) for each in (*args, *options.values())):
        raise RandomStateError(
            f"{func} draws from a generator that the graph does not know, so replays would repeat its numbers. "
            "Draw from the default generator, or copy random numbers into a static tensor before each replay."
        )
    if str(func) not in _warm and not _needs_no_library(func):
        raise ColdStartError(
            f"{func} runs for the first time during a capture, when nothing may be loaded or allocated. "
            "Call the program inside `with warm_up():` first."
        )


def _needs_no_library(func: Any) -> bool:
    """Return whether an operator is ready at once: it copies or reserves memory, describes it anew, or has none."""
    copies = func is torch.ops.aten.copy_.default
    return bool(copies or func.is_view or reserves(func) or "Tensor" not in str(func._schema))
