"""`verify`: compare two programs by everything that could tell them apart."""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from course_lib.errors import FusionError
from course_lib.verify.dropout_masks import Masks
from course_lib.verify.findings import Finding, Report, compare
from course_lib.verify.observation import Observation, Program, at_precision, observe, prepared


def verify(
    reference: Program,
    candidate: Program,
    inputs: Sequence[object],
    *,
    gradients: bool = True,
    modes: Sequence[str] = ("eval", "train"),
    dtypes: Sequence[torch.dtype] = (torch.float64, torch.float32),
    seed: int = 0,
) -> Report:
    """Run both programs on copies of `inputs` and compare all that they give and do.

        >>> verify(torch.nn.ReLU(), torch.nn.GELU(), (torch.randn(3),), modes=("eval",)).passed
        False

    In each mode and at each precision: the structure of the result, types, shapes, strides, which outputs share memory
    with which inputs or parameters, values, what happened to inputs and buffers, and the gradients of all inputs and
    parameters. Values follow the rule of `error_rule.py`, against the reference in fp64. Dropout is compared with
    the same masks on both sides, see `dropout_masks.py`. For two modules, the state dict must have the same entries,
    and a candidate that loads the reference's must compute the same.

    Neither program is changed: modules are copied first. `modes` are "eval" and "train"; where the reference itself
    fails, the candidate has to fail as well.
    """
    findings: list[Finding] = []
    for mode in modes:
        for dtype in dtypes:
            where = f"{mode}, {str(dtype).removeprefix('torch.')}"
            findings += _compare_runs(reference, candidate, inputs, mode, dtype, where, gradients, seed)
    if isinstance(reference, nn.Module) and isinstance(candidate, nn.Module):
        mode, dtype = modes[0], dtypes[0]

        def compare_loaded(changed: nn.Module, loaded: nn.Module) -> list[Finding]:
            where = "after loading a state dict"
            return _compare_runs(changed, loaded, inputs, mode, dtype, where, gradients=False, seed=seed)

        findings += compare_state(reference, candidate, dtype, mode, compare_loaded, seed)
    return Report(tuple(findings))


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
        try:
            if isinstance(copied, nn.Module):
                copied.to(precision)
            with mode_of_masks:
                return observe(copied, at_precision(given, precision), gradients=gradients, seed=seed)
        except Exception as error:  # whatever a program does on these inputs
            return error

    seen = run(candidate, dtype, masks)
    eager = run(reference, dtype, Masks(masks.recorded))
    truth = eager if dtype == torch.float64 else run(reference, torch.float64, Masks(masks.recorded))
    if isinstance(eager, FusionError):
        return [Finding("dropout", where, False, str(eager))]
    if isinstance(eager, Exception) or isinstance(truth, Exception):
        said = f"the reference fails ({eager if isinstance(eager, Exception) else truth}), and the candidate "
        return [Finding("failing", where, isinstance(seen, Exception), said + ("too" if seen else "does not"))]
    if isinstance(seen, Exception):
        return [Finding("running", where, False, f"{type(seen).__name__}: {seen}")]
    return compare(seen, eager, truth, where)


def compare_state(
    reference: nn.Module,
    candidate: nn.Module,
    dtype: torch.dtype,
    mode: str,
    compare_runs: Callable[[nn.Module, nn.Module], Sequence[Finding]],
    seed: int,
) -> list[Finding]:
    """Compare the entries of two state dicts, and what is computed after both have loaded other values."""
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
    return [Finding("state dict", "always", True), *compare_runs(changed, loaded)]


def _change_parameters(module: nn.Module, seed: int) -> None:
    """Change every parameter a little, without making a variance negative or a scale zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            factors = torch.rand(parameter.shape, generator=generator, dtype=torch.float64) + 0.5
            parameter.mul_(factors.to(parameter))
