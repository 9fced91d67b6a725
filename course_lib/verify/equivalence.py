"""`verify`: compare two programs by everything that could differ, with a `Finding` for each comparison."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from course_lib.capture.outside_state import restore_outside, variables_of
from course_lib.errors import FusionError
from course_lib.layouts import kind_of, require_plain
from course_lib.verify.dropout_masks import Masks
from course_lib.verify.error_rule import deviation
from course_lib.verify.observation import Observation, Program, at_precision, differentiated_twice, observe, prepared

Compared = tuple[str, bool, str]  # what was compared, whether it agrees, and how it differs


@dataclass(frozen=True)
class Finding:
    """One comparison: what was compared, under which circumstances, and the difference that was seen."""

    what: str
    where: str  # such as "train, float32"
    passed: bool
    detail: str = ""

    def __str__(self) -> str:
        mark = "FAIL" if not self.passed else "note" if self.detail else "ok  "
        return f"{mark} {self.where}: {self.what}{': ' if self.detail else ''}{self.detail}"


@dataclass(frozen=True, repr=False)
class Report:
    """Everything that `verify` compared."""

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Tell whether no difference was seen."""
        return all(finding.passed for finding in self.findings)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """Return the comparisons that failed."""
        return tuple(finding for finding in self.findings if not finding.passed)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Return what is worth knowing though no comparison failed, such as another order of parameters."""
        return tuple(finding for finding in self.findings if finding.passed and finding.detail)

    def __str__(self) -> str:
        head = f"{len(self.findings)} comparisons, {len(self.failures)} failed"
        if self.failures:
            return "\n".join([head, *(f"  {finding}" for finding in (*self.failures, *self.notes))])
        by_place = Counter(finding.where for finding in self.findings)
        lines = [f"  ok   {where}: {count} comparisons" for where, count in by_place.items()]
        return "\n".join([head, *lines, *(f"  {finding}" for finding in self.notes)])

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form


def compare(
    seen: Observation, eager: Observation, truth: Observation, where: str, *, layouts: bool = True
) -> list[Finding]:
    """Return the comparisons of a candidate's run with runs of its reference at this precision and in fp64.

    Without `layouts`, strides and shared memory of the results may differ.
    """
    compared = _differences(seen, eager, truth, layouts)
    return [Finding(what, where, same, "" if same else detail) for what, same, detail in compared]


def _differences(seen: Observation, eager: Observation, truth: Observation, layouts: bool) -> Iterator[Compared]:
    yield "structure", seen.structure == eager.structure, f"{seen.structure}, expected {eager.structure}"
    if seen.structure != eager.structure:
        return
    if layouts:
        yield "strides", seen.strides == eager.strides, f"{seen.strides}, expected {eager.strides}"
        yield "aliasing", seen.aliases == eager.aliases, f"{seen.aliases}, expected {eager.aliases}"
        yield "random numbers", seen.random_states == eager.random_states, "others were drawn, or in another order"
    for number, values in enumerate(zip(seen.outputs, eager.outputs, truth.outputs, strict=True)):
        yield _same(f"output {number}", *values)
    for number, values in enumerate(zip(seen.inputs_after, eager.inputs_after, truth.inputs_after, strict=True)):
        yield _same(f"input {number} after the run", *values)
    size = _largest((*truth.input_gradients, *truth.parameter_gradients.values()))
    for number, found in enumerate(
        zip(seen.input_gradients, eager.input_gradients, truth.input_gradients, strict=True)
    ):
        yield _same(f"gradient of input {number}", *found, magnitude=size)
    yield from _same_by_name("gradient of", *(run.parameter_gradients for run in (seen, eager, truth)), magnitude=size)
    yield from _same_by_name("buffer", *(run.buffers_after for run in (seen, eager, truth)))


def _largest(tensors: Sequence[torch.Tensor | None]) -> float:
    """Return the largest finite magnitude in tensors; gradients that cancel out are sums of numbers of that size."""
    finite = [tensor[torch.isfinite(tensor)].abs() for tensor in tensors if tensor is not None]
    return max((float(tensor.max()) for tensor in finite if tensor.numel()), default=0.0)


def _same_by_name(
    what: str,
    seen: Mapping[str, object],
    eager: Mapping[str, object],
    truth: Mapping[str, object],
    *,
    magnitude: float = 0.0,
) -> Iterator[Compared]:
    if seen.keys() != eager.keys() and any(value is not None for value in (*seen.values(), *eager.values())):
        yield f"{what} what", False, f"{sorted(seen)}, expected {sorted(eager)}"
        return
    for name in seen:
        yield _same(f"{what} {name}", seen[name], eager.get(name), truth.get(name), magnitude=magnitude)


def _same(what: str, seen: object, eager: object, truth: object, *, magnitude: float = 0.0) -> Compared:
    if not (isinstance(seen, torch.Tensor) and isinstance(eager, torch.Tensor) and isinstance(truth, torch.Tensor)):
        same = type(seen) is type(eager) and not isinstance(seen, torch.Tensor) and seen == eager
        return what, same, f"{_shown(seen)}, expected {_shown(eager)}"
    if (seen.dtype, seen.shape) != (eager.dtype, eager.shape):
        found, expected = (f"{value.dtype} {tuple(value.shape)}" for value in (seen, eager))
        return what, False, f"{found}, expected {expected}"
    measured = deviation(seen, truth, eager, magnitude=magnitude)
    return what, measured.within_bound, str(measured)


def _shown(value: object) -> str:
    return f"a tensor {tuple(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)


def _is_nothing(gradient: torch.Tensor | None) -> bool:
    return gradient is None or not bool(gradient.any())


def verify(
    reference: Program,
    candidate: Program,
    inputs: Sequence[object],
    *,
    gradients: bool = True,
    second_gradients: bool = True,
    modes: Sequence[str] = ("eval", "train"),
    dtypes: Sequence[torch.dtype] = (torch.float64, torch.float32),
    seed: int = 0,
) -> Report:
    """Run both programs on copies of `inputs` and compare their results and effects.

        >>> verify(torch.nn.ReLU(), torch.nn.GELU(), (torch.randn(3),), modes=("eval",)).passed
        False

    In each mode and at each precision, it compares the structure of the result, types, shapes, strides and values. It
    also compares memory that outputs share with inputs, parameters or each other, changes of inputs and buffers, and
    the gradients of all inputs and parameters. None is not zeros: an optimiser skips a parameter without a gradient,
    and AdamW decays one whose gradient is zero. At the first precision it also compares gradients of gradients, if the
    reference has them and `second_gradients` is not turned off: some operators of PyTorch have none, such as fused
    attention. Values follow the rule of `error_rule.py`, against the reference in fp64. Dropout is compared with the
    same masks on both sides, see `dropout_masks.py`; other random numbers must be drawn in the same order, before and
    after the same dropouts. For two modules, the state dict must have the same entries, and a candidate that loads the
    reference's must compute the same. A note says where parameters come in another order, as an optimizer's state would
    need it.

    Neither program is changed: modules are copied first. Random states and variables outside of the programs are
    restored; what the programs leave in such variables or print is not compared. `modes` are "eval" and "train";
    if the reference itself fails, the candidate must fail too. Raises `FusionError` for a sparse or nested input.
    """
    require_plain("verify", tuple(inputs), FusionError)
    restore = restore_outside((*variables_of(reference)[0], *variables_of(candidate)[0]))
    try:
        findings = list(
            _findings(reference, candidate, inputs, gradients, gradients and second_gradients, modes, dtypes, seed)
        )
    finally:
        restore()
    return Report(tuple(findings))


def _findings(
    reference: Program,
    candidate: Program,
    inputs: Sequence[object],
    gradients: bool,
    second: bool,
    modes: Sequence[str],
    dtypes: Sequence[torch.dtype],
    seed: int,
) -> Iterator[Finding]:
    for mode in modes:
        for dtype in dtypes:
            where = f"{mode}, {str(dtype).removeprefix('torch.')}"
            yield from _compare_runs(reference, candidate, inputs, mode, dtype, where, gradients, seed)
        if second:
            yield from _compare_second_gradients(reference, candidate, inputs, mode, dtypes[0], seed)
    if isinstance(reference, nn.Module) and isinstance(candidate, nn.Module):
        mode, dtype = modes[0], dtypes[0]

        def compare_loaded(changed: nn.Module, loaded: nn.Module) -> list[Finding]:
            where = "after loading a state dict"
            return _compare_runs(changed, loaded, inputs, mode, dtype, where, gradients=False, seed=seed)

        yield from compare_state(reference, candidate, dtype, mode, compare_loaded, seed)


def _compare_runs(
    reference: Program,
    candidate: Program,
    inputs: Sequence[object],
    mode: str,
    dtype: torch.dtype,
    where: str,
    gradients: bool,
    seed: int,
) -> list[Finding]:
    given = at_precision(inputs, dtype)
    masks = Masks(seed=seed)

    def run(program: Program, precision: torch.dtype, mode_of_masks: Masks) -> Observation | Exception:
        copied = prepared(program, dtype, mode)  # rounds the parameters to the precision that is compared
        if isinstance(copied, nn.Module):
            copied.to(precision)
        with mode_of_masks:
            seen = observe(copied, at_precision(given, precision), gradients=gradients, seed=seed)
        if isinstance(seen, Exception):
            return seen
        return replace(seen, random_states=(*seen.random_states, *mode_of_masks.random_states))

    seen = run(candidate, dtype, masks)
    eager = run(reference, dtype, Masks(masks.recorded))
    truth = eager if dtype == torch.float64 else run(reference, torch.float64, Masks(masks.recorded))
    if isinstance(eager, FusionError):
        return [Finding("dropout", where, False, str(eager))]
    if isinstance(eager, Exception) or isinstance(truth, Exception):
        fails = isinstance(seen, Exception)
        said = f"the reference fails ({eager if isinstance(eager, Exception) else truth}), and the candidate "
        return [Finding("failing", where, fails, "" if fails else said + "does not")]
    if isinstance(seen, Exception):
        return [Finding("running", where, False, f"{type(seen).__name__}: {seen}")]
    return compare(seen, eager, truth, where)


def _compare_second_gradients(
    reference: Program, candidate: Program, inputs: Sequence[object], mode: str, dtype: torch.dtype, seed: int
) -> Iterator[Finding]:
    """Compare gradients of gradients, if the reference can compute them."""
    masks = Masks(seed=seed)

    def run(
        program: Program, precision: torch.dtype, mode_of_masks: Masks
    ) -> dict[str, torch.Tensor | None] | Exception:
        try:
            copied = prepared(program, dtype, mode)
            if isinstance(copied, nn.Module):
                copied.to(precision)
            with mode_of_masks:
                return differentiated_twice(copied, at_precision(at_precision(inputs, dtype), precision), seed=seed)
        except Exception as error:  # many operators have no second derivative
            return error

    seen, where = run(candidate, dtype, masks), f"{mode}, {str(dtype).removeprefix('torch.')}"
    eager = run(reference, dtype, Masks(masks.recorded))
    truth = eager if dtype == torch.float64 else run(reference, torch.float64, Masks(masks.recorded))
    if isinstance(eager, Exception) or isinstance(truth, Exception):
        return
    if isinstance(seen, Exception):
        yield Finding("double backward", where, False, f"{type(seen).__name__}: {seen}")
        return
    size = _largest(tuple(truth.values()))
    absent = {name for name in seen.keys() & eager.keys() if _is_nothing(seen[name]) and _is_nothing(eager[name])}
    seen, eager, truth = ({n: v for n, v in run.items() if n not in absent} for run in (seen, eager, truth))
    for what, same, detail in _same_by_name("second gradient of", seen, eager, truth, magnitude=size):
        yield Finding(what, where, same, "" if same else detail)


def compare_state(
    reference: nn.Module,
    candidate: nn.Module,
    dtype: torch.dtype,
    mode: str,
    compare_runs: Callable[[nn.Module, nn.Module], Sequence[Finding]],
    seed: int,
) -> list[Finding]:
    """Compare the entries of two state dicts, and the results after both have loaded other values."""
    entries = [
        {name: tuple(getattr(value, "shape", ())) for name, value in model.state_dict().items()}
        for model in (candidate, reference)
    ]
    if entries[0] != entries[1]:
        differing = sorted(set(entries[0].items()) ^ set(entries[1].items()))
        return [Finding("state dict", "always", False, f"entries differ: {differing}")]
    changed, loaded = (prepared(model, dtype, mode) for model in (reference, candidate))
    assert isinstance(changed, nn.Module), "a module is prepared as a module"
    assert isinstance(loaded, nn.Module), "a module is prepared as a module"
    _change_parameters(changed, seed)
    loaded.load_state_dict(changed.state_dict())
    return [Finding("state dict", "always", True), *_order(reference, candidate), *compare_runs(changed, loaded)]


def _order(reference: nn.Module, candidate: nn.Module) -> list[Finding]:
    """Return a note if parameters of the same names come in another order."""
    found, expected = ([name for name, _ in model.named_parameters()] for model in (candidate, reference))
    if found == expected:
        return []
    place = next((n for n, (one, other) in enumerate(zip(found, expected, strict=False)) if one != other), -1)
    said = f"parameter {place} is {found[place]}, of the reference {expected[place]}"
    advice = "an optimizer's state, which goes by position, does not fit; match parameters by name"
    return [Finding("parameter order", "always", True, f"{said}; {advice}")]


def _change_parameters(module: nn.Module, seed: int) -> None:
    """Change parameters and saved buffers a little, without making a variance negative or a scale zero."""
    generator = torch.Generator().manual_seed(seed)
    parameters = dict(module.named_parameters())
    with torch.no_grad():
        for name, tensor in module.state_dict(keep_vars=True).items():
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and not kind_of(tensor):
                factors = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) + 0.5
                tensor.mul_(factors.to(tensor))
                if name not in parameters:
                    tensor.add_((factors / 8).to(tensor))  # most buffers begin as zeros
