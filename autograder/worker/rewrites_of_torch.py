"""Refuse what PyTorch or the course has ready where it is the task: rewrites, passes, and functions of named files.

A task of the first kind is to decompose, to functionalise or to derive by hand. PyTorch does all three, and its result
looks like an answer. So the functions that run are observed, and the capture is refused if one of these is among them.
A copy of such a function in the answer is known by its instructions.
The module `withdrawn_parts` takes operators and functions of C++ out of the worker, which no Python shows.
"""

import contextlib
import functools
import importlib.util
from collections.abc import Collection, Iterator, Mapping
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from autograder.worker.copied_functions import Copies, copies_of
from autograder.worker.observed_functions import LOOKS, evaded, exact, lasting, observed
from autograder.worker.operator_recorder import is_recording
from autograder.worker.source import AnswerError

HOME = f"{Path(torch.__file__).parent}/"
SITE = f"{Path(torch.__file__).parents[1]}/"
COURSE = "course_lib/"
# Files of PyTorch, and how the names of those functions begin that rewrite programs; "" stands for all public names.
REWRITES = {
    "_decomp/decompositions.py": ("",),
    "_decomp/decompositions_for_jvp.py": ("native_", "batch_norm_"),  # its other names run when it is imported
    "_functorch/aot_autograd.py": ("aot_", "create_aot_"),
    "_functorch/eager_transforms.py": ("functionalize",),
    "_refs/": ("",),
}
FUNCTIONALISES = ("_enable_functionalization", "_to_functional_tensor")  # functions of C++ that begin it
DIFFERENTIATES = "run_backward"  # autograd's engine: while a graph is recorded, it derives a backward
IN_C = frozenset((*FUNCTIONALISES, DIFFERENTIATES))
# Passes that share, fold or fuse: the task of passes and schedules.
PASSES = {
    "_functorch/compile_utils.py": ("fx_graph_cse",),
    "_inductor/constant_folding.py": ("constant_fold",),
    "fx/experimental/const_fold.py": ("split_const_subgraphs",),
    "fx/passes/dialect/common/cse_pass.py": ("CSEPass",),
}
PASSES_OF_COURSE = "course_lib.fusion.passes"
METHODS_OF_PASSES = ("guard", "replacement", "transform")


class RewrittenByTorchError(AnswerError):
    """PyTorch, or a pass of the course, made the rewrite that the answer should make."""


class UnobservedError(AnswerError):
    """The answer did what keeps functions from being observed."""


_at_load: list[str] = []


def begin_answer() -> None:
    """Forget what the answer before started; call this when another one is loaded."""
    lasting.clear()


def note_rewrites() -> contextlib.AbstractContextManager[None]:
    """Return a context in which the answer is loaded; a rewrite that runs in it is refused by every later capture."""
    _at_load.clear()
    evaded.clear()
    return _observed(_at_load, {**REWRITES, **PASSES}, copies=_copies(passes_only=False))


@contextlib.contextmanager
def refused_rewrites(*, passes_only: bool = False) -> Iterator[None]:
    """Raise an `AnswerError` at the end of the block if a rewrite ran, or could run unseen.

    Both in the block and when the answer was loaded. With `passes_only`, decompositions are allowed: what makes graphs
    runs them, too.
    """
    seen = [] if passes_only else [*_at_load]
    rewrites = PASSES if passes_only else {**REWRITES, **PASSES}
    with _observed(seen, rewrites, copies=_copies(passes_only=passes_only)):
        yield
    if seen:
        raise RewrittenByTorchError(
            f"The answer ran {seen[0]}, which makes such a rewrite by itself. Write the steps yourself, with what the "
            "task names."
        )
    hidden = [each for each in (*evaded, *lasting) if each not in LOOKS]
    if hidden:
        raise UnobservedError(
            f"The answer used {hidden[0]} while it was loaded or captured. Here the functions that run are observed; "
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
    evaded.clear()
    named = [(file, begins) for file, _, begins in map(_split, places)]
    files = {file: tuple(begins for other, begins in named if other == file) for file, _ in named}
    copies = copies_of(tuple((_path(file), begins) for file, begins in named if file.endswith(".py")))
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
    if hidden := [*evaded, *lasting]:
        raise UnobservedError(
            f"The answer used {hidden[0]}. Here the functions that run are observed; find the answer without it."
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
        if event == "c_call":  # of which there are most
            if (
                in_c
                and type(called) is BuiltinFunctionType
                and called.__name__ in IN_C
                and not seen
                and _rewrites(called)
            ):
                seen.append(f"{called.__name__} of PyTorch")
        elif event == "call" and id(frame.f_code) not in plain and not seen:
            if _is_pass_of_course(frame) or _is_rewrite(frame.f_code, rewrites):
                seen.append(_told(frame))
            elif copies and (name := copies.original(frame.f_code, SITE)):
                seen.append(f"a copy of {name}")
            elif exact(frame.f_code.co_name) not in METHODS_OF_PASSES:  # whose object decides, in each call
                plain[id(frame.f_code)] = frame.f_code

    with observed(observe, trusted=HOME if threads_of_torch else ""):
        yield


def _rewrites(called: BuiltinFunctionType) -> bool:
    """Tell whether a function named in `IN_C` makes a rewrite; a gradient of numbers, to compare with, is none."""
    return called.__name__ != DIFFERENTIATES or is_recording() or get_proxy_mode() is not None


def _split(place: str) -> tuple[str, str, str]:
    """Return the file of a place as it stands in `REWRITES`, a colon, and how the names of functions begin."""
    if place.startswith(COURSE):
        return place.partition(":")
    return (place.removeprefix("torch/") if place.startswith("torch/") else f"../{place}").partition(":")


def _path(file: str) -> Path:
    """Return where a file of `_split` lies."""
    folder = _course_folder() if file.startswith(COURSE) else None
    return Path(folder.parent, file) if folder else Path(HOME, file)


@functools.cache
def _course_folder() -> Path | None:
    """Return the folder of the course's library, or None in a worker without it."""
    found = importlib.util.find_spec("course_lib")
    places = found.submodule_search_locations if found else None
    return Path(places[0]) if places else None


def _passes_folder() -> Path | None:
    """Return the folder of the course's passes, or None in a worker without the library."""
    folder = _course_folder()
    return folder / "fusion" / "passes" if folder else None


@functools.cache
def _copies(*, passes_only: bool) -> Copies:
    """Return what tells copies of the passes of PyTorch and of the course, and of what runs those of the course.

    And of PyTorch's other rewrites, with their helpers, but for `passes_only`.
    """
    folder = _passes_folder()
    files = [*sorted(folder.rglob("*.py")), folder.parent / "fusion_pass.py"] if folder else []
    places = [(file, f".{name}") for file in files for name in METHODS_OF_PASSES]
    for place, named in (PASSES if passes_only else {**REWRITES, **PASSES}).items():
        path = Path(HOME, place)
        places += [(file, begins) for file in (sorted(path.rglob("*.py")) or [path]) for begins in named]
    return copies_of(tuple(places))


def _is_rewrite(code: CodeType, rewrites: Mapping[str, tuple[str, ...]]) -> bool:
    """Tell whether a function is one of a place; helpers, which fake tensors use, are only where they are named."""
    file, name = exact(code.co_filename), exact(code.co_qualname)
    course = _course_folder()
    is_of_course = course is not None and file.startswith(f"{course}/")
    if name.startswith("<") or not (is_of_course or file.startswith(SITE)):  # an import
        return False
    if not code.co_flags & CO_OPTIMIZED:  # the body of a class, when its file is imported
        return False
    if is_of_course:
        file = f"{COURSE}{file.removeprefix(f'{course}/')}"
    else:
        file = file.removeprefix(HOME) if file.startswith(HOME) else f"../{file.removeprefix(SITE)}"
    begins = (begin for place, named in rewrites.items() if file.startswith(place) for begin in named)
    return any(name.startswith(begin) and (begin or not name.startswith("_")) for begin in begins)


def _is_pass_of_course(frame: FrameType) -> bool:
    """Tell whether a pass of the library runs, a class derived from one, or a method of one in another class."""
    if exact(frame.f_code.co_name) not in METHODS_OF_PASSES:
        return False
    classes = type.__dict__["__mro__"].__get__(type(frame.f_locals.get("self")))  # whatever its metaclass says
    modules = [type.__dict__["__module__"].__get__(each) for each in classes]
    names = map(exact, (dict.get(frame.f_globals, "__name__"), *modules))
    return any(name.startswith(PASSES_OF_COURSE) for name in names)


def _told(frame: FrameType) -> str:
    if _is_pass_of_course(frame):
        name = type.__dict__["__name__"].__get__(type(frame.f_locals.get("self")))
        return f"the pass {name} of course_lib.fusion"
    module = exact(dict.get(frame.f_globals, "__name__")) or "torch"
    return f"{module}.{exact(frame.f_code.co_qualname).partition('.')[0]}"
