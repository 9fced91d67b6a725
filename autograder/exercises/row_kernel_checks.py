"""Checks for kernels of rows with several outputs, of which one follows from another, and which load each element once.

A check of an output that follows from another one costs nothing for a slip in that other one.
"""

import contextlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from autograder.host import comparison
from autograder.host.checks.kernel_checks import FAR, Demand, inputs_kept
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Case, promoted
from autograder.host.kinds.triton import KernelRun

Formula = Callable[..., Sequence[Tensor]]
Step = Callable[..., Tensor]
"""One output of another one, and of the arguments of the call."""
FEWEST = 8  # elements by which a mistake is told from others
LEAST_SPREAD = 0.1  # the standard deviation of what another output follows from; that of the reference is above 1


def right(number: int, names: Sequence[str], reference: Formula, mistakes: Sequence[tuple[Formula, str]]) -> Demand:
    """Demand that an output equals the reference's; a mistake explains an output that equals its own."""

    def demand(run: KernelRun, case: Case) -> None:
        exact = promoted(case).args
        wrong = [(lambda formula=formula: formula(*exact)[number], says) for formula, says in mistakes]
        _require(run, number, names[number], case, reference(*exact)[number], reference(*case.args)[number], wrong)

    return demand


def follows(
    number: int, source: int, names: Sequence[str], formula: Step, mistakes: Sequence[tuple[Step, str]]
) -> Demand:
    """Demand that an output is `formula` of another output, right or wrong, so that a slip before it costs nothing."""

    def demand(run: KernelRun, case: Case) -> None:
        given, exact = run.outputs[source], promoted(case).args
        if not _varies(given):
            raise CheckFailedError(
                f"{names[number].capitalize()} follows from {names[source]}, whose values are all alike{case.where}. "
                f"Mend {names[source]} first."
            )
        double = given.double()
        wrong = [(lambda step=step: step(double, *exact), says) for step, says in mistakes]
        _require(run, number, names[number], case, formula(double, *exact), formula(given, *case.args), wrong)

    return demand


def founded(source: int, names: Sequence[str], reference: Formula, slips: Sequence[Formula], follow: Demand) -> Demand:
    """Demand what follows from an output, and that this one is about right or has a known slip.

    So what follows from something else earns nothing.
    """

    def demand(run: KernelRun, case: Case) -> None:
        found, exact = run.outputs[source], promoted(case).args
        truth = reference(*exact)[source]
        near = float((found.double() - truth).abs().sum()) <= FAR * float(truth.abs().sum())
        if found.numel() >= FEWEST and not near and not any(same(found, slip(*exact)[source]) for slip in slips):
            raise CheckFailedError(
                f"{names[1 - source].capitalize()} counts where it follows from {names[source]}, and {names[source]} "
                f"has nothing of the reference{case.where}. Mend {names[source]} first."
            )
        follow(run, case)

    return demand


def _varies(given: Tensor) -> bool:
    spread = given.numel() < FEWEST or float(given.double().std()) > LEAST_SPREAD
    return bool(given.isfinite().all()) and spread


def _require(
    run: KernelRun,
    number: int,
    name: str,
    case: Case,
    truth: Tensor,
    eager: Tensor,
    mistakes: Sequence[tuple[Callable[[], Tensor], str]],
) -> None:
    found, traffic = run.outputs[number], run.returned[number]
    if traffic.stored < traffic.elements:
        raise CheckFailedError(
            f"{traffic.elements - traffic.stored} of {traffic.elements} elements of {name} were never stored"
            f"{case.where}. One program stores one row, and the grid has a program for each row."
        )
    try:
        comparison.require_close(found, truth, eager, name, case.where)
    except CheckFailedError as error:
        for formula, says in mistakes:
            wrong = formula()
            if same(found, wrong) and not same(wrong, truth):
                raise CheckFailedError(f"{name.capitalize()}{case.where}: {says}") from None
        raise error from None


def same(found: Tensor, wrong: Tensor) -> bool:
    """Tell whether an output is what a mistake gives; never of few elements."""
    # about ten times the error of a sum in float32, and far less than any of the mistakes makes
    return found.numel() >= FEWEST and torch.allclose(found.double(), wrong.double(), rtol=1e-4, atol=1e-5)


def either(*demands: Demand) -> Demand:
    """Demand that one of these holds; the last one's message is told."""

    def demand(run: KernelRun, case: Case) -> None:
        for each in demands[:-1]:
            with contextlib.suppress(CheckFailedError):
                return each(run, case)
        return demands[-1](run, case)

    return demand


def once(inputs: Sequence[int]) -> Demand:
    """Demand that each element of these inputs is loaded once, each output is stored once, and nothing else is.

    No input is written. Other inputs are vectors along a row, and may be loaded once for each row.
    """

    def demand(run: KernelRun, case: Case) -> None:
        for number in inputs:
            each = run.inputs[number]
            if each.loaded < each.elements:
                missing = each.elements - each.loaded
                raise CheckFailedError(f"{missing:,} elements of {each.name} were never loaded{case.where}.")
            _require_once("loaded", each.loads, each.elements, each.name, case)
        inputs_kept(run, case)
        rows = len(case.args[inputs[0]])
        for each in (each for number, each in enumerate(run.inputs) if number not in inputs):
            if each.loads > rows * each.elements:
                raise CheckFailedError(
                    f"{each.loads:,} elements of {each.name} were loaded{case.where}, which has {each.elements:,}. "
                    f"Once for each of {rows} rows is enough."
                )
        for each in run.returned:
            _require_once("stored", each.stores, each.elements, each.name, case)
        for each in run.made:
            if each.loads:
                raise CheckFailedError(
                    f"{each.loads:,} elements of {each.name} were read back from memory{case.where}. A block that was "
                    "computed stays in registers: use it there."
                )
            if each.role != "output" and each.stores:
                raise CheckFailedError(
                    f"{each.name}, which is not returned, was written{case.where}: {each.stores:,} elements. Nothing "
                    "has to be kept but the outputs; a mask follows from seed and position."
                )

    return demand


def _require_once(what: str, count: int, elements: int, name: str, case: Case) -> None:
    if count > elements:
        raise CheckFailedError(
            f"{count:,} elements of {name} were {what}{case.where}, which has {elements:,}. Once is enough: a row fits "
            "into one block.",
            share=max(0.0, 2 - count / elements) / 2,
        )
