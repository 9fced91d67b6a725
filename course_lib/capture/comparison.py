"""Compare capture modes: which of them captures a program, refuses it, or is silently wrong."""

import copy
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map_only

from course_lib.capture.behaviour import Behaviour, Call, behaviour_of, deviation
from course_lib.capture.captured import Captured
from course_lib.capture.failure_causes import name_of, reason_in_short
from course_lib.capture.modes import MODES, Program, capture, require_initialised, require_tuple
from course_lib.capture.outside_state import Variable, restore_outside, variables_of
from course_lib.errors import CaptureError
from course_lib.isolation import Restore, seed_everything
from course_lib.layouts import require_plain
from course_lib.show import Table
from course_lib.silence import silence

Verdict = Literal["captured", "refused", "refuses a probe", "silently wrong", "ran as Python"]
MARKS: Mapping[str, str] = {
    "captured": "✓",
    "refused": "–",
    "refuses a probe": "(–)",
    "silently wrong": "✗",
    "ran as Python": "○",
}
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
    differentiated: bool = False  # whether all inputs of floating point require gradients


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
    `concrete_args` is passed to mode "fx", and `dynamic_shapes` to "export", which otherwise fixes all sizes.

    A capture is silently wrong if, on any input, it differs from the program: in its results, their strides and the
    memory that they share; in what it or its backward pass prints, raises, draws or changes (inputs, attributes,
    variables outside); or in the gradients of parameters and inputs. Each input is tried as it is, and again with
    gradients asked for, unless the call stands under `torch.no_grad()`. A capture "refuses a probe" if it reports that
    it cannot run the probe or its backward pass; this is not an error. It "ran as Python" if there is no graph.

    Each mode uses one copy of the program for all calls in order, so that state is compared correctly. The program, its
    inputs, random states, your own functions that Dynamo has compiled, and variables outside that its code refers to
    (global lists, closures, attributes of classes) are not changed. Files, half-used iterators and packages may be.

    Raises `CaptureError` if the program fails on the example inputs or cannot be copied, and for wrong arguments.
    """
    _check(model, modes, example_inputs, probe_inputs)
    example = _Probe("the example", tuple(example_inputs), dict(example_kwarg_inputs or {}))
    probes = _probes(model, example, probe_inputs, switch_training)
    options = {"fx": {"concrete_args": concrete_args}, "export": {"dynamic_shapes": dynamic_shapes}}
    return Comparison(name_of(model), _results(model, probes, modes, options))


def _check(model: Program, modes: Sequence[str], example_inputs: object, probe_inputs: Sequence[object]) -> None:
    require_initialised("compare_modes", model)
    require_tuple("compare_modes", "example_inputs", example_inputs)
    require_tuple("compare_modes", "probe_inputs", probe_inputs)
    require_plain("compare_modes", (example_inputs, list(probe_inputs)), CaptureError)
    for number, inputs in enumerate(probe_inputs, start=1):
        if not isinstance(inputs, Mapping):
            require_tuple("compare_modes", f"probe {number}", inputs)
    several = isinstance(modes, Collection) and not isinstance(modes, str) and modes  # a generator could be read once
    if not several or not all(isinstance(mode, str) and mode in MODES for mode in modes):
        raise CaptureError(
            f"compare_modes got modes={modes!r}; it expects several of {', '.join(map(repr, MODES))}, such as "
            'modes=("trace", "fx").'
        )


def _results(
    model: Program, probes: Sequence[_Probe], modes: Sequence[str], options: Mapping[str, Any]
) -> tuple[ModeResult, ...]:
    """Run the program, then judge each mode from the same state; restore it at the end."""
    variables, _ = variables_of(model)
    restore = restore_outside(variables, model, [(probe.inputs, probe.keyword_inputs) for probe in probes])
    results = []
    try:
        with silence():
            truth = _truth(model, probes, variables)
            for mode in modes:
                restore()
                results.append(_row(mode, model, truth, _Outside(variables, restore), options.get(mode, {})))
    finally:
        restore()
    return tuple(results)


@dataclass(frozen=True)
class _Outside:
    variables: tuple[Variable, ...]
    restore: Restore


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
    if torch.is_grad_enabled():
        asked = [probe for probe in named if _lacks_gradients(probe)]
        named += [replace(one, name=f"{one.name} with gradients of the inputs", differentiated=True) for one in asked]
    return named


def _lacks_gradients(probe: _Probe) -> bool:
    """Tell whether an input could have a gradient and is not a leaf that asks for one."""
    tensors = [leaf for leaf in tree_leaves((probe.inputs, probe.keyword_inputs)) if isinstance(leaf, torch.Tensor)]
    floating = [tensor for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
    return not all(tensor.requires_grad and tensor.is_leaf for tensor in floating)


def _truth(
    model: Program, probes: Sequence[_Probe], variables: tuple[Variable, ...]
) -> list[tuple[_Probe, Call, Behaviour]]:
    """Run the program on all probes; those that it cannot run with gradients of its inputs are left out."""
    eager = _copied(model)
    seen: list[tuple[_Probe, Call, Behaviour]] = []
    for seed, probe in enumerate(probes, start=CAPTURE_SEED + 1):
        call = Call((probe.inputs, dict(probe.keyword_inputs)), seed, (eager,), variables, probe.differentiated)
        behaviour = behaviour_of(_in_mode(eager, [eager], probe), call)
        if not seen and behaviour.raised is not None:
            raise CaptureError(
                f"{name_of(model)} itself fails on the example inputs ({behaviour.raised}); "
                "give inputs on which it runs."
            ) from behaviour.raised
        if probe.differentiated and (behaviour.raised or behaviour.backward_raised):
            break
        seen.append((probe, call, behaviour))
    return seen


def _row(mode: str, model: Program, truth: Any, outside: _Outside, options: Mapping[str, Any]) -> ModeResult:
    """Judge one mode, whatever PyTorch raises: a capture may hold fake tensors, which cannot be compared."""
    try:
        return _judge(mode, model, truth, outside, options)
    except Exception as error:
        why = f"What it gave cannot be compared with the program: {type(error).__name__}: {_one_line(error)}"
        return ModeResult(mode, "refused", why)


def _judge(
    mode: str,
    model: Program,
    truth: Sequence[tuple[_Probe, Call, Behaviour]],
    outside: _Outside,
    options: Mapping[str, Any],
) -> ModeResult:
    """Capture a copy in one mode and compare it with the program on all probes."""
    program = _copied(model)
    seed_everything(CAPTURE_SEED)
    random.seed(CAPTURE_SEED)
    example = truth[0][0]
    try:
        captured = _capture(program, example, mode, options)
    except CaptureError as error:
        return ModeResult(mode, "refused", reason_in_short(mode, error))
    finally:
        outside.restore()
    refusal, running = "", captured
    for probe, call, expected in truth:
        if probe.differentiated and running is captured and mode == "aot":
            running = _with_gradients(program, captured, example, options)
        owners = (program, running.module)
        seen = behaviour_of(_in_mode(running.run, owners, probe), replace(call, owners=owners))
        failed = seen.raised or seen.backward_raised
        if failed is not None and expected.raised is None and expected.backward_raised is None:
            passed = "" if seen.raised else " in the backward pass"
            refusal = refusal or f"On {probe.name}: {type(failed).__name__}{passed}: {_one_line(failed)}"
            continue
        if wrong := deviation(expected, seen, owners):
            return ModeResult(mode, "silently wrong", f"On {probe.name}: {wrong}.", captured)
    if refusal:
        return ModeResult(mode, "refuses a probe", refusal, captured)
    as_python = mode == "dynamo" and not captured.graphs
    return ModeResult(mode, "ran as Python" if as_python else "captured", _how(captured), captured)


def _capture(program: Program, example: _Probe, mode: str, options: Mapping[str, Any]) -> Captured:
    return capture(program, example.inputs, example_kwarg_inputs=example.keyword_inputs, mode=mode, **options)


def _with_gradients(program: Program, captured: Captured, example: _Probe, options: Mapping[str, Any]) -> Captured:
    """Capture again with AOTAutograd, which records a backward pass only for inputs that ask for gradients."""

    def asking(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().requires_grad_(tensor.is_floating_point() or tensor.is_complex())

    inputs, named = tree_map_only(torch.Tensor, asking, (example.inputs, dict(example.keyword_inputs)))
    try:
        return _capture(program, replace(example, inputs=tuple(inputs), keyword_inputs=named), captured.mode, options)
    except CaptureError:  # such as a write to an input, which is allowed only where it is not a leaf
        return captured


def _in_mode(run: Any, owners: Sequence[Any], probe: _Probe) -> Callable[..., Any]:
    """Return `run` with the training mode of the probe, which is set on all `owners`."""

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

    return in_mode


def _how(captured: Captured) -> str:
    if captured.mode == "lazy":
        more = f", and more than one: {captured.breaks[0]}" if captured.breaks else ""
        return f"A graph each call, by torch._lazy{more}."
    if captured.mode == "dynamo" and not captured.graphs:
        return (
            f"No graph: Dynamo leaves all of it to Python{''.join(f' ({reason})' for reason in captured.breaks[:1])}."
        )
    if captured.breaks:
        number = f"{len(captured.graphs)} graph{'s' if len(captured.graphs) > 1 else ''}"
        return f"{number}, and Python in between: {captured.breaks[0]}."
    return f"One graph, by {captured.captured_by}."


def _copied(model: Program) -> Any:
    try:
        return copy.deepcopy(model)
    except Exception as error:  # an attribute of any class may refuse to be copied
        raise CaptureError(f"{name_of(model)} cannot be copied, so it cannot be tried safely: {error}") from error


def _one_line(error: Exception) -> str:
    """Return the most useful line of a message: the last one of TorchScript's tracebacks, otherwise the first."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    return " ".join(lines[-1 if "TorchScript" in lines[0] else 0].split())[:160]
