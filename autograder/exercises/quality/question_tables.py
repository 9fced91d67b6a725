"""Make the tables of answers that students get in place of the functions that know them; see `exercises.questions`.

The reference solution answers the visible checks for each seed, and every result of a kept function is recorded.
"""

import functools
import importlib
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from autograder.exercises import all_exercises, find
from autograder.exercises.lessons import module_name
from autograder.exercises.quality.in_process import NotAskedError, OwnAnswer, own_function
from autograder.exercises.questions import Results, keeps_answers, recorded, shipped_text
from autograder.exercises.registry import hidden_part
from autograder.host.draw import Draw
from autograder.host.exercise import REFERENCE

SEEDS = 40
"""Draws of questions for each check; a check asks 2 to 30 questions of each."""


def exercises_with_tables() -> tuple[str, ...]:
    """Return the ids of the exercises whose visible checks need a table."""
    return tuple(each for each in all_exercises() if keeps_answers(importlib.import_module(module_name(each))))


def table_of(exercise_id: str, seeds: Iterable[int]) -> str:
    """Return the text of the file of one exercise, with all that its visible checks ask for these seeds."""
    part = hidden_part(exercise_id)
    assert part is not None, "only instructors make tables"
    text = next(control.answer for control in part.controls if control.name == REFERENCE)
    drawn = list(seeds)
    with warnings.catch_warnings(), recorded() as results:
        warnings.simplefilter("ignore")  # what Inductor and TorchScript think of small programs
        answer = OwnAnswer(remembering(own_function(exercise_id, text)))
        for seed in drawn:
            for check in find(exercise_id).checks:
                try:
                    check.run(answer, Draw(seed, exercise_id, check.name))
                except NotAskedError as wanted:
                    if wanted.args != ("capture",):  # a check of tensors, which asks all kept functions before
                        raise
    return shipped_text(drawn, results)


def remembering(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, which is called once for equal arguments of plain data; two checks may ask the same."""
    results: Results = {}

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        try:
            key = json.dumps(args) if args else None
        except TypeError:  # a program, or tensors
            key = None
        if key is None:
            return function(*args)
        if key not in results:
            results[key] = function(*args)
        return results[key]

    return called


def write_tables(folder: Path, exercise_ids: Iterable[str] | None = None, *, seeds: int = SEEDS) -> int:
    """Write the file of each exercise that has one into `folder`, and return their size in bytes.

    Prints a line for each. One process for each core makes the tables, and starts with those of the last lessons,
    some of which take longest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chosen = exercises_with_tables() if exercise_ids is None else exercise_ids
    spawn = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), spawn, torch.set_num_threads, (1,)) as processes:
        begun = [processes.submit(_write_table, folder, each, seeds) for each in reversed(list(chosen))]
        return sum(each.result() for each in begun)


def _write_table(folder: Path, exercise_id: str, seeds: int) -> int:
    start = time.perf_counter()
    text = table_of(exercise_id, range(seeds))
    (folder / f"{exercise_id}.json").write_text(text, encoding="utf-8")
    print(f"{exercise_id}: {len(text):,} bytes in {time.perf_counter() - start:.0f} s", flush=True)
    return len(text)
