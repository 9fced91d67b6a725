"""Compare capture modes: which of them captures a program, refuses it, or is silently wrong."""

import contextlib
import copy
import io
import logging
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torch import nn

from course_lib.capture.captured import Captured
from course_lib.capture.failure_causes import name_of, reason_in_short
from course_lib.capture.isolation import (
    Behaviour,
    attribute,
    behaviour_of,
    difference,
    fresh_inputs,
    preserving,
    seed_everything,
)
from course_lib.capture.modes import MODES, Program, capture
from course_lib.errors import CaptureError
from course_lib.show import Table

Verdict = Literal["captured", "refused", "refuses a probe", "silently wrong"]
MARKS: Mapping[str, str] = {"captured": "✓", "refused": "–", "refuses a probe": "(–)", "silently wrong": "✗"}
COLUMNS = ("mode", "", "verdict", "why")
WIDTH = 90  # characters of a line in the last column of the text form


@dataclass(frozen=True)
class ModeResult:
    """Hold the verdict on one capture mode."""

    mode: str
    verdict: Verdict
    why: str  # one sentence: how it was captured, why it was refused, or on which probe it is wrong and by how much
    captured: Captured | None = field(default=None, repr=False)  # of a copy of the program; None if refused


@dataclass(frozen=True, repr=False)
class Comparison:
    """Hold the verdict on each mode; prints as a table and shows as one in a notebook."""

    name: str  # of the program
    results: tuple[ModeResult, ...]

    def __getitem__(self, mode: str) -> ModeResult:
        """Return the result of a mode; raise `CaptureError` if it was not compared."""
        for result in self.results:
            if result.mode == mode:
                return result
        raise CaptureError(f"The mode {mode!r} was not compared; these were: {', '.join(self.verdicts)}.")

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Return the verdict by mode."""
        return {result.mode: result.verdict for result in self.results}

    def __str__(self) -> str:
        return str(self._table())

    __repr__ = __str__  # notebooks, terminals and logs all show the readable form

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def _table(self) -> Table:
        rows = tuple((result.mode, MARKS[result.verdict], result.verdict, result.why) for result in self.results)
        return Table(COLUMNS, rows, caption=self.name, wrapped=WIDTH)


CAPTURE_SEED = 1  # probes have other seeds, so that a random number that became a constant is noticed


@dataclass(frozen=True)
class _Probe:
    name: str
    inputs: tuple[Any, ...]
    keyword_inputs: Mapping[str, Any]
    training: bool | None = None  # None: the current mode of the program


def compare_modes(
    model: Program,
    example_inputs: Sequence[object],
    probe_inputs: Sequence[Sequence[object] | Mapping[str, object]] = (),
    *,
    example_kwarg_inputs: Mapping[str, object] | None = None,
    modes: Sequence[str] = MODES,
    switch_training: bool = False,
    concrete_args: Mapping[str, object] | None = None,
    dynamic_shapes: object = None,
) -> Comparison:
    """Capture a program in each mode from the example inputs, and compare it with the program on all inputs.

        >>> def double_if_positive(x):
        ...     return x * 2 if x.sum() > 0 else x
        >>> ones = torch.ones(2)
        >>> compare_modes(double_if_positive, (ones,), [(-ones,)], modes=("trace", "fx")).verdicts
        {'trace': 'silently wrong', 'fx': 'refused'}

    `example_kwarg_inputs` are inputs by name, as for `capture`. A probe is a tuple of inputs, as `example_inputs` is,
    or a dict of inputs by name; `switch_training` adds one with the example inputs in the other training mode.
    `concrete_args` is passed to mode "fx", and `dynamic_shapes` to "export", which otherwise fixes all sizes. A capture
    is silently wrong if, on any input, its results, output, exceptions or changes (of inputs or attributes) differ from
    those of the program. It "refuses a probe" if it reports that it cannot run the probe; this is not an error. Each
    mode uses one copy of the program for all calls in order, so that programs with state are compared correctly. The
    program, its inputs, random states, and your own functions that Dynamo has compiled are not changed.

    Raises `CaptureError` if the program itself fails on the example inputs, or cannot be copied.
    """
    example = _Probe("the example", tuple(example_inputs), dict(example_kwarg_inputs or {}))
    probes = _probes(model, example, probe_inputs, switch_training)
    options: dict[str, dict[str, Any]] = {
        "fx": {"concrete_args": concrete_args},
        "export": {"dynamic_shapes": dynamic_shapes},
    }
    with preserving(model), _silence():
        truth = _truth(model, probes)
        results = [_judge(mode, model, probes, truth, options.get(mode, {})) for mode in modes]
    return Comparison(name_of(model), tuple(results))


def _probes(
    model: Program,
    example: _Probe,
    probes: Sequence[Sequence[object] | Mapping[str, object]],
    switch_training: bool,
) -> list[_Probe]:
    named = [example]
    for number, inputs in enumerate(probes, start=1):
        by_place, by_name = ((), inputs) if isinstance(inputs, Mapping) else (tuple(inputs), {})
        named.append(_Probe(f"probe {number}", by_place, by_name))
    if switch_training:
        if not isinstance(model, nn.Module):
            raise CaptureError("compare_modes got switch_training for a function; only a module has a training mode.")
        other = "evaluation" if model.training else "training"
        named.append(replace(example, name=f"the example in {other} mode", training=not model.training))
    return named


def _truth(model: Program, probes: Sequence[_Probe]) -> list[Behaviour]:
    eager = _copied(model)
    seen = [_call(eager, [eager], probe, seed) for seed, probe in enumerate(probes, start=CAPTURE_SEED + 1)]
    if seen[0].raised is not None:
        raise CaptureError(
            f"{name_of(model)} itself fails on the example inputs ({seen[0].raised}); give inputs on which it runs."
        ) from seen[0].raised
    return seen


def _judge(
    mode: str, model: Program, probes: Sequence[_Probe], truth: Sequence[Behaviour], options: Mapping[str, Any]
) -> ModeResult:
    """Capture a copy in one mode and compare it with the program on all probes."""
    program = _copied(model)
    seed_everything(CAPTURE_SEED)
    random.seed(CAPTURE_SEED)
    try:
        example = probes[0]
        captured = capture(program, example.inputs, example_kwarg_inputs=example.keyword_inputs, mode=mode, **options)
    except CaptureError as error:
        return ModeResult(mode, "refused", reason_in_short(mode, error))
    refusal = ""
    for seed, (probe, expected) in enumerate(zip(probes, truth, strict=True), start=CAPTURE_SEED + 1):
        seen = _call(captured.run, [program, captured.module], probe, seed)
        if seen.raised is not None and expected.raised is None:
            refusal = refusal or f"On {probe.name}: {type(seen.raised).__name__}: {_one_line(seen.raised)}"
            continue
        wrong = _wrong(expected, seen, [program, captured.module])
        if wrong:
            return ModeResult(mode, "silently wrong", f"On {probe.name}: {wrong}.", captured)
    if refusal:
        return ModeResult(mode, "refuses a probe", refusal, captured)
    return ModeResult(mode, "captured", _how(captured), captured)


def _call(run: Any, owners: Sequence[Any], probe: _Probe, seed: int) -> Behaviour:
    """Run one probe; its training mode is set on all `owners`, and the state of the first one is read."""

    def in_mode(inputs: tuple[Any, ...], keyword_inputs: dict[str, Any]) -> Any:
        modules = [owner for owner in owners if isinstance(owner, nn.Module) and probe.training is not None]
        before = [owner.training for owner in modules]
        for owner in modules:
            owner.train(bool(probe.training))
        try:
            return run(*inputs, **keyword_inputs)
        finally:
            for owner, training in zip(modules, before, strict=True):
                owner.train(training)

    given = fresh_inputs((probe.inputs, dict(probe.keyword_inputs)))
    return behaviour_of(in_mode, given, seed=seed, model=owners[0])


def _wrong(expected: Behaviour, seen: Behaviour, owners: Sequence[object]) -> str:
    """Return a short text on how the capture differs from the program, or an empty text if it does not."""
    if expected.raised is not None:
        if seen.raised is None:
            return f"a result where the program raises {type(expected.raised).__name__}"
        return ""
    if said := difference(expected.result, seen.result):
        return f"the result is {said}" if said.startswith("off") else f"the result has {said}"
    if said := difference(expected.inputs, seen.inputs):
        return f"the inputs are left otherwise than by the program ({said})"
    if expected.printed != seen.printed:
        return f"it prints {seen.printed!r} where the program prints {expected.printed!r}"
    for path, value in expected.changed.items():
        if all(difference(value, attribute(owner, path)) for owner in owners):
            found = difference(value, attribute(owners[0], path))
            return f"the attribute {path} is left otherwise than by the program ({found})"
    return ""


def _how(captured: Captured) -> str:
    if captured.breaks:
        number = f"{len(captured.graphs)} graph{'s' if len(captured.graphs) > 1 else ''}"
        return f"{number}, and Python in between: {captured.breaks[0]}."
    if captured.mode == "dynamo" and not captured.graphs:
        return "No graph: all of it runs as Python."
    return f"One graph, by {captured.captured_by}." if captured.mode != "lazy" else "A graph each call, by torch._lazy."


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Silence what PyTorch prints and logs about programs that it refuses; warnings are kept with each result."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        nowhere = io.StringIO()
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _copied(model: Program) -> Any:
    try:
        return copy.deepcopy(model)
    except Exception as error:  # an attribute of any class may refuse to be copied
        raise CaptureError(f"{name_of(model)} cannot be copied, so it cannot be tried safely: {error}") from error


def _one_line(error: Exception) -> str:
    """Return the most useful line of a message: the last one of TorchScript's tracebacks, otherwise the first."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    return " ".join(lines[-1 if "TorchScript" in lines[0] else 0].split())[:160]
