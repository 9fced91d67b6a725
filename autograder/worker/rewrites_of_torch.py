"""Refuse what PyTorch or the course has ready where it is the task: rewrites, passes, and attention by hand.

A task of the first kind is to decompose, to functionalise or to derive by hand. PyTorch does all three, and its result
looks like an answer. So the functions that run are observed, and the capture is refused if one of these is among them.
What would end the observation, or run where it does not see, is refused, too: another profiler, a thread, a process.
A copy of such a function in the answer is known by the names that it uses, in their order.
Of functions on tensors, the operators that run are observed, however they are called.
"""

import _thread
import contextlib
import functools
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from importlib.machinery import SourceFileLoader
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType
from typing import Any

import torch
from torch._C._autograd import _disable_profiler_legacy, _enable_profiler_legacy
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig
from torch.fx.experimental.proxy_tensor import get_proxy_mode

import course_lib
from autograder.worker.source import AnswerError

_HUB: Any = torch.hub  # `torch.fx` takes its progress bars from here
HOME = f"{Path(torch.__file__).parent}/"
SITE = f"{Path(torch.__file__).parents[1]}/"
# Files of PyTorch, and how the names of those functions begin that rewrite programs; "" stands for all public names.
REWRITES = {
    "_decomp/decompositions.py": ("",),
    "_functorch/aot_autograd.py": ("aot_", "create_aot_"),
    "_functorch/eager_transforms.py": ("functionalize",),
    "_refs/": ("",),
}
FUNCTIONALISES = ("_enable_functionalization", "_to_functional_tensor")  # functions of C++ that begin it
DIFFERENTIATES = "run_backward"  # autograd's engine: while a graph is recorded, it derives a backward
COLLATOR = "transformers.data.data_collator"  # hides tokens for a masked language model
ATTENTION = ("scaled_dot_product", "multi_head_attention")  # in the name of each operator that computes attention
# Passes that share, fold or fuse: the task of passes and schedules.
PASSES = {
    "_functorch/compile_utils.py": ("fx_graph_cse",),
    "_inductor/constant_folding.py": ("constant_fold",),
    "fx/experimental/const_fold.py": ("split_const_subgraphs",),
    "fx/passes/dialect/common/cse_pass.py": ("CSEPass",),
}
PASSES_OF_COURSE = "course_lib.fusion.passes"
PASSES_FOLDER = Path(course_lib.__file__).parent / "fusion" / "passes"
METHODS_OF_PASSES = ("guard", "replacement", "transform")
FEWEST_NAMES = 8  # globals and attributes that a function uses; with fewer, two functions may use the same by chance
UNSEEN = {
    "sys.setprofile": "sys.setprofile",
    "os.fork": "os.fork",
    "os.posix_spawn": "another process",
    "subprocess.Popen": "another process",
}
"""Audit events after which functions may run unobserved, each with what the answer used."""


class RewrittenByTorchError(AnswerError):
    """PyTorch, or a pass of the course, made the rewrite that the answer should make."""


class UnobservedError(AnswerError):
    """The answer did what keeps functions from being observed."""


_at_load: list[str] = []
_evaded: list[str] = []
_observing: list[bool] = []  # True while the answer runs, and empty at all other times


def note_rewrites() -> contextlib.AbstractContextManager[None]:
    """Return a context in which the answer is loaded; a rewrite that runs in it is refused by every later capture."""
    _at_load.clear()
    _evaded.clear()
    return _observed(_at_load, {**REWRITES, **PASSES})


@contextlib.contextmanager
def refused_rewrites(*, passes_only: bool = False) -> Iterator[None]:
    """Raise an `AnswerError` at the end of the block if a rewrite ran, or could run unseen.

    Both in the block and when the answer was loaded. With `passes_only`, decompositions are allowed: what makes graphs
    runs them, too.
    """
    seen = [] if passes_only else [*_at_load]
    with _observed(seen, PASSES if passes_only else {**REWRITES, **PASSES}):
        yield
    if seen:
        raise RewrittenByTorchError(
            f"The answer ran {seen[0]}, which makes such a rewrite by itself. Write the steps yourself, with what the "
            "task names."
        )
    if _evaded:
        raise UnobservedError(
            f"The answer used {_evaded[0]} while it was loaded or captured. Here the functions that run are observed; "
            "write the steps without it."
        )


@contextlib.contextmanager
def refused_files(places: Collection[str]) -> Iterator[None]:
    """Raise an `AnswerError` at the end of the block if a public function ran in it from one of these places.

    A place is a file or folder where packages are installed, such as "transformers/", or a file, a colon, and how the
    names of the refused functions begin. Whether or not the block raises otherwise, this error is raised.
    """
    seen: list[str] = []
    _evaded.clear()
    has_ended = False  # an error in the callback, as of too many calls, ends the observation, and the answer with it
    try:
        with _observed(seen, {file: (begins,) for file, _, begins in map(_split, places)}):
            yield
        has_ended = True
    finally:
        if seen or (has_ended and "sys.setprofile" in _evaded):
            raise RewrittenByTorchError(
                f"The answer ran {seen[0] if seen else 'sys.setprofile'}. That does this task by itself, and is "
                "refused here: find the answer yourself, with what the task names."
            )


@contextlib.contextmanager
def refused_ready_parts() -> Iterator[None]:
    """Raise `RewrittenByTorchError` at the end of the block if an operator ran in it that computes attention.

    Likewise if the part of transformers is loaded that hides tokens, since that is a task of the same kind.
    PyTorch's oldest profiler tells; it starts in a tenth of a millisecond, and writes nothing.
    """
    _enable_profiler_legacy(ProfilerConfig(ProfilerState.CPU, False, False, False, False, False, _ExperimentalConfig()))
    try:
        yield
    finally:
        events = [event.name() for thread in _disable_profiler_legacy() for event in thread]
    ran = next((name for name in events if name.startswith("aten::") and any(a in name for a in ATTENTION)), "")
    if ran:
        raise RewrittenByTorchError(
            f"The answer ran {ran}, which is PyTorch's own attention. Compute it by hand: a product, a scale, a mask, "
            "softmax and another product."
        )
    if COLLATOR in sys.modules:
        raise RewrittenByTorchError(f"The answer loaded {COLLATOR}, which hides tokens. Draw and compare by hand.")


@contextlib.contextmanager
def refused_recorders() -> Iterator[None]:
    """Raise `RewrittenByTorchError` at the end of the block if PyTorch's own backends recorded graphs in it.

    Their calls are replaced for the time of the block, since observing all functions slows Dynamo four times.
    """
    from torch._dynamo import testing
    from torch._dynamo.backends import debugging

    seen: list[str] = []

    def noting(name: str, function: Any) -> Any:
        @functools.wraps(function)
        def noted(*args: Any, **kwargs: Any) -> Any:
            seen.append(name)
            return function(*args, **kwargs)

        return noted

    ready = [(c, "__call__") for c in vars(testing).values() if isinstance(c, type) and "__call__" in vars(c)]
    with contextlib.ExitStack() as stack:
        for owner, name in [*ready, (debugging, "_explain_graph_detail")]:
            function = getattr(owner, name)
            stack.callback(setattr, owner, name, function)
            setattr(owner, name, noting(owner.__name__, function))
        yield
    if seen:
        raise RewrittenByTorchError(
            f"The answer let {seen[0]} of PyTorch record the graphs. Write the backend yourself: it is a function."
        )


@contextlib.contextmanager
def _observed(seen: list[str], rewrites: Mapping[str, tuple[str, ...]]) -> Iterator[None]:
    """Put the name of the first rewrite that runs in the block into `seen`."""

    copied = _names_in(tuple(rewrites.items())) if rewrites.keys() >= PASSES.keys() else {}

    def observe(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and called is _thread.start_new_thread and not _starter(frame).startswith(HOME):
            _evaded.append("a thread")
        if event == "c_call" and not seen and rewrites.keys() >= REWRITES.keys() and _rewrites_in_c(called):
            seen.append(f"{called.__name__} of PyTorch")
        if event == "call" and not seen and (_is_pass_of_course(frame) or _is_rewrite(frame, rewrites)):
            seen.append(_told(frame))
        if event == "call" and not seen and frame.f_code.co_names in copied:
            seen.append(f"a copy of {copied[frame.f_code.co_names]}")

    # or the first run of `torch.fx.Interpreter` starts a thread that watches progress bars
    _HUB.tqdm.monitor_interval = 0
    before, outer = sys.getprofile(), [*_observing]
    _observing.clear()
    sys.setprofile(observe)
    _observing.append(True)
    try:
        yield
    finally:
        _observing.clear()
        sys.setprofile(before)
        _observing.extend(outer)


def _rewrites_in_c(called: Any) -> bool:
    """Tell whether a function of C++ makes a rewrite; a gradient of numbers, to compare with, is none."""
    if not isinstance(called, BuiltinFunctionType):
        return False
    return called.__name__ in FUNCTIONALISES or (called.__name__ == DIFFERENTIATES and get_proxy_mode() is not None)


def _split(place: str) -> tuple[str, str, str]:
    """Return the file of a place as it stands in `REWRITES`, a colon, and how the names of functions begin."""
    return (place.removeprefix("torch/") if place.startswith("torch/") else f"../{place}").partition(":")


def _starter(frame: FrameType) -> str:
    """Return the file that starts a thread, which has no audit event, from the frame of the call."""
    while frame.f_code.co_filename == threading.__file__ and frame.f_back:
        frame = frame.f_back
    return frame.f_code.co_filename


def _audit(event: str, _: tuple[object, ...]) -> None:
    if _observing and event in UNSEEN:
        _evaded.append(UNSEEN[event])


sys.addaudithook(_audit)  # nothing can remove it again


def _is_rewrite(frame: FrameType, rewrites: Mapping[str, tuple[str, ...]]) -> bool:
    file, name = frame.f_code.co_filename, frame.f_code.co_qualname
    if name.startswith(("_", "<")) or not file.startswith(SITE):  # helpers, which fake tensors use, and imports
        return False
    if not frame.f_code.co_flags & CO_OPTIMIZED:  # the body of a class, when its file is imported
        return False
    file = file.removeprefix(HOME) if file.startswith(HOME) else f"../{file.removeprefix(SITE)}"
    return any(file.startswith(place) and name.startswith(begins) for place, begins in rewrites.items())


@functools.cache
def _names_in(rewrites: tuple[tuple[str, tuple[str, ...]], ...]) -> Mapping[tuple[str, ...], str]:
    """Return the names that each refused function uses, and what it is called; so a copy of its text is found, too."""
    found = {}
    for place, begins in rewrites:
        for code in _functions_of(Path(HOME) / place):
            if code.co_qualname.startswith(begins) and not code.co_qualname.startswith("_"):
                found[code.co_names] = f"{code.co_qualname.partition('.<')[0]} of PyTorch"
    for code in _functions_of(PASSES_FOLDER):
        if code.co_name in METHODS_OF_PASSES:
            found[code.co_names] = f"the pass {code.co_qualname.partition('.')[0]} of course_lib.fusion"
    return found


def _functions_of(place: Path) -> Iterator[CodeType]:
    """Yield the functions of a file or folder that use many names; none where it is masked. Nothing of it runs."""
    try:
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        unread = [code for file in files if (code := SourceFileLoader("read", str(file)).get_code("read"))]
    except OSError:
        return
    while unread:
        inner = [constant for constant in unread.pop().co_consts if isinstance(constant, CodeType)]
        unread += inner
        yield from (c for c in inner if c.co_flags & CO_OPTIMIZED and len(c.co_names) >= FEWEST_NAMES)


def _is_pass_of_course(frame: FrameType) -> bool:
    """Tell whether a pass of the library runs, a class derived from one, or a method of one in another class."""
    if frame.f_code.co_name not in METHODS_OF_PASSES:
        return False
    classes = type(frame.f_locals.get("self")).__mro__
    names = [str(frame.f_globals.get("__name__")), *(each.__module__ for each in classes)]
    return any(str(name).startswith(PASSES_OF_COURSE) for name in names)


def _told(frame: FrameType) -> str:
    if _is_pass_of_course(frame):
        return f"the pass {type(frame.f_locals.get('self')).__name__} of course_lib.fusion"
    module = str(frame.f_globals.get("__name__", "torch"))
    return f"{module}.{frame.f_code.co_qualname.partition('.')[0]}"
