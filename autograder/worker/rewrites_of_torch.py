"""Refuse what PyTorch or the course has ready where it is the task: rewrites, passes, and functions of named files.

A task of the first kind is to decompose, to functionalise or to derive by hand. PyTorch does all three, and its result
looks like an answer. So the functions that run are observed, and the capture is refused if one of these is among them.
What would end the observation, or run where it does not see, is refused, too: another profiler, a thread, a process.
A copy of such a function in the answer is known by its instructions.
The module `withdrawn_parts` takes operators and functions of C++ out of the worker, which no Python shows.
"""

import _posixsubprocess
import _thread
import contextlib
import functools
import importlib.util
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from autograder.worker.copied_functions import Copies, copies_of
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
# Passes that share, fold or fuse: the task of passes and schedules.
PASSES = {
    "_functorch/compile_utils.py": ("fx_graph_cse",),
    "_inductor/constant_folding.py": ("constant_fold",),
    "fx/experimental/const_fold.py": ("split_const_subgraphs",),
    "fx/passes/dialect/common/cse_pass.py": ("CSEPass",),
}
PASSES_OF_COURSE = "course_lib.fusion.passes"
METHODS_OF_PASSES = ("guard", "replacement", "transform")
THREAD = "a thread"
UNSEEN = {
    "sys.setprofile": "sys.setprofile",
    "os.fork": "os.fork",
    "os.forkpty": "os.forkpty",
    "os.posix_spawn": "another process",
    "os.system": "another process",
    "subprocess.Popen": "another process",
}
"""Audit events after which functions may run unobserved, each with what the answer used."""
UNAUDITED: tuple[tuple[Any, str, str], ...] = (
    (_thread, "start_new_thread", THREAD),
    (threading, "_start_new_thread", THREAD),
    (_posixsubprocess, "fork_exec", "another process"),
    (sys, "getprofile", "sys.getprofile"),
)
"""Functions without an audit event, after which functions may run unobserved."""
LOOKS = ("gc.get_objects", "gc.get_referrers")
"""Audit events of whoever looks for the observer; PyTorch captures with them, too."""


class RewrittenByTorchError(AnswerError):
    """PyTorch, or a pass of the course, made the rewrite that the answer should make."""


class UnobservedError(AnswerError):
    """The answer did what keeps functions from being observed."""


_GETPROFILE = sys.getprofile
_at_load: list[str] = []
_evaded: list[str] = []
_own_threads: list[None] = []  # one for each thread that the worker may still start
_observing: list[bool] = []  # True while the answer runs, and empty at all other times


def note_rewrites() -> contextlib.AbstractContextManager[None]:
    """Return a context in which the answer is loaded; a rewrite that runs in it is refused by every later capture."""
    _at_load.clear()
    _evaded.clear()
    return _observed(_at_load, {**REWRITES, **PASSES}, copies=_copies_of_passes())


@contextlib.contextmanager
def refused_rewrites(*, passes_only: bool = False) -> Iterator[None]:
    """Raise an `AnswerError` at the end of the block if a rewrite ran, or could run unseen.

    Both in the block and when the answer was loaded. With `passes_only`, decompositions are allowed: what makes graphs
    runs them, too.
    """
    seen = [] if passes_only else [*_at_load]
    with _observed(seen, PASSES if passes_only else {**REWRITES, **PASSES}, copies=_copies_of_passes()):
        yield
    if seen:
        raise RewrittenByTorchError(
            f"The answer ran {seen[0]}, which makes such a rewrite by itself. Write the steps yourself, with what the "
            "task names."
        )
    evaded = [each for each in _evaded if each not in LOOKS]
    if evaded:
        raise UnobservedError(
            f"The answer used {evaded[0]} while it was loaded or captured. Here the functions that run are observed; "
            "write the steps without it."
        )


@contextlib.contextmanager
def refused_files(places: Collection[str]) -> Iterator[None]:
    """Raise an `AnswerError` at the end of the block if a public function ran in it from one of these places.

    A place is a file or folder where packages are installed, such as "transformers/", or a file, a colon, and how the
    names of the refused functions begin. A copy of a function of such a file is refused, too. This error is raised
    whether or not the block raises another one.
    """
    seen: list[str] = []
    _evaded.clear()
    files = {file: (begins,) for file, _, begins in map(_split, places)}
    copies = copies_of(tuple((Path(HOME, file), begins) for file, (begins,) in files.items() if file.endswith(".py")))
    try:
        with _observed(seen, files, threads_of_torch=False, copies=copies):
            yield
    finally:
        if seen:
            raise RewrittenByTorchError(
                f"The answer ran {seen[0]}. That does this task by itself, and is refused here: find the answer "
                "yourself, with what the task names."
            )
    # after an error: one in the callback, as of too many calls, ends the observation, and the answer with it
    if _evaded:
        raise UnobservedError(
            f"The answer used {_evaded[0]}. Here the functions that run are observed; find the answer without it."
        )


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
def _observed(
    seen: list[str],
    rewrites: Mapping[str, tuple[str, ...]],
    *,
    threads_of_torch: bool = True,
    copies: Copies | None = None,
) -> Iterator[None]:
    """Put the name of the first rewrite that runs in the block into `seen`.

    PyTorch may start threads where `threads_of_torch` is true, as its compiler does.
    """

    in_c = rewrites.keys() >= REWRITES.keys()
    plain: dict[int, CodeType] = {}  # looked at once; held, since the id of code that is gone is given again

    def observe(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and in_c and not seen and _rewrites_in_c(called):
            seen.append(f"{called.__name__} of PyTorch")
        elif event == "call" and id(frame.f_code) not in plain and not seen:
            if _is_pass_of_course(frame) or _is_rewrite(frame.f_code, rewrites):
                seen.append(_told(frame))
            elif copies and (name := copies.original(frame.f_code, SITE)):
                seen.append(f"a copy of {name}")
            elif _exact(frame.f_code.co_name) not in METHODS_OF_PASSES:  # whose object decides, in each call
                plain[id(frame.f_code)] = frame.f_code

    # or the first run of `torch.fx.Interpreter` starts a thread that watches progress bars
    _HUB.tqdm.monitor_interval = 0
    before, outer = _GETPROFILE(), [*_observing]
    _observing.clear()
    sys.setprofile(observe)
    _observing.append(True)
    try:
        with _noted_calls(HOME if threads_of_torch else None):
            yield
    finally:
        _observing.clear()
        sys.setprofile(before)
        _observing.extend(outer)


@contextlib.contextmanager
def own_threads(count: int) -> Iterator[None]:
    """Let the worker start so many threads in the block, which are not the answer's."""
    _own_threads[:] = [None] * count
    try:
        yield
    finally:
        _own_threads.clear()


@contextlib.contextmanager
def _noted_calls(trusted: str | None) -> Iterator[None]:
    """Note in `_evaded` what of `UNAUDITED` is called, however it is called, but not by files below `trusted`."""
    originals = [getattr(owner, name) for owner, name, _ in UNAUDITED]
    for (owner, name, told), original in zip(UNAUDITED, originals, strict=True):
        setattr(owner, name, _noting(original, told, trusted))
    try:
        yield
    finally:
        for (owner, name, _), original in zip(UNAUDITED, originals, strict=True):
            setattr(owner, name, original)


def _noting(original: Callable[..., Any], told: str, trusted: str | None) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        if told == THREAD and _own_threads:
            _own_threads.pop()
        elif trusted is None or not _caller(sys._getframe(1)).startswith(trusted):
            _evaded.append(told)
        return original(*args, **kwargs)

    return noted


def _rewrites_in_c(called: Any) -> bool:
    """Tell whether a function of C++ makes a rewrite; a gradient of numbers, to compare with, is none."""
    if not isinstance(called, BuiltinFunctionType):
        return False
    return called.__name__ in FUNCTIONALISES or (called.__name__ == DIFFERENTIATES and get_proxy_mode() is not None)


def _split(place: str) -> tuple[str, str, str]:
    """Return the file of a place as it stands in `REWRITES`, a colon, and how the names of functions begin."""
    return (place.removeprefix("torch/") if place.startswith("torch/") else f"../{place}").partition(":")


def _caller(frame: FrameType) -> str:
    """Return the file that starts a thread, from the frame of the call."""
    while frame.f_code.co_filename == threading.__file__ and frame.f_back:
        frame = frame.f_back
    return _exact(frame.f_code.co_filename)


def _exact(text: Any) -> str:
    """Return an exact `str`, so that no method of a derived class runs where functions are not observed."""
    return str.__str__(text) if isinstance(text, str) else ""


def _audit(event: str, _: tuple[object, ...]) -> None:
    if _observing and event in UNSEEN:
        _evaded.append(UNSEEN[event])
    if _observing and event in LOOKS:
        _evaded.append(event)


sys.addaudithook(_audit)  # nothing can remove it again


@functools.cache
def _passes_folder() -> Path | None:
    """Return the folder of the course's passes, or None in a worker without the library."""
    found = importlib.util.find_spec("course_lib")
    places = found.submodule_search_locations if found else None
    return Path(places[0], "fusion", "passes") if places else None


@functools.cache
def _copies_of_passes() -> Copies:
    """Return what tells copies of the passes of PyTorch and of the course."""
    folder = _passes_folder()
    files = sorted(folder.rglob("*.py")) if folder else []
    methods = [(file, f".{name}") for file in files for name in METHODS_OF_PASSES]
    return copies_of((*((Path(HOME, file), begins) for file, (begins,) in PASSES.items()), *methods))


def _is_rewrite(code: CodeType, rewrites: Mapping[str, tuple[str, ...]]) -> bool:
    file, name = _exact(code.co_filename), _exact(code.co_qualname)
    if name.startswith(("_", "<")) or not file.startswith(SITE):  # helpers, which fake tensors use, and imports
        return False
    if not code.co_flags & CO_OPTIMIZED:  # the body of a class, when its file is imported
        return False
    file = file.removeprefix(HOME) if file.startswith(HOME) else f"../{file.removeprefix(SITE)}"
    return any(file.startswith(place) and name.startswith(begins) for place, begins in rewrites.items())


def _is_pass_of_course(frame: FrameType) -> bool:
    """Tell whether a pass of the library runs, a class derived from one, or a method of one in another class."""
    if _exact(frame.f_code.co_name) not in METHODS_OF_PASSES:
        return False
    classes = type.__dict__["__mro__"].__get__(type(frame.f_locals.get("self")))  # whatever its metaclass says
    modules = [type.__dict__["__module__"].__get__(each) for each in classes]
    names = map(_exact, (dict.get(frame.f_globals, "__name__"), *modules))
    return any(name.startswith(PASSES_OF_COURSE) for name in names)


def _told(frame: FrameType) -> str:
    if _is_pass_of_course(frame):
        name = type.__dict__["__name__"].__get__(type(frame.f_locals.get("self")))
        return f"the pass {name} of course_lib.fusion"
    module = _exact(dict.get(frame.f_globals, "__name__")) or "torch"
    return f"{module}.{_exact(frame.f_code.co_qualname).partition('.')[0]}"
