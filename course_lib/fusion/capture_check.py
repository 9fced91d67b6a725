"""Check a captured graph against its program on the example: what did the capture lose?

torch.fx records operators that Python calls on traced values. It loses what stands around them: `torch.no_grad` and
`torch.autocast`, hooks, the backward of a `torch.autograd.Function`, printed text, counters, decisions of Python, and
random numbers that do not depend on an input. What Python computes from parameters and buffers it keeps as constants.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_lib.capture.behaviour import Behaviour, Call, behaviour_of, deviations
from course_lib.capture.fx_tracing import is_tracing
from course_lib.capture.outside_state import Variable, restore_outside, tensors_of, variables_of
from course_lib.graph.memory import storage_of
from course_lib.graph.recorder import written_and_drawn
from course_lib.graph.stand_ins import tensors_held
from course_lib.isolation import Restore, restore_of
from course_lib.module_classes import reads_its_mode
from course_lib.silence import silence

_READS_A_NUMBER = torch.ops.aten._local_scalar_dense.default  # what `item`, `int` and `if` come to
CHECK_SEED = 2
SHOWN = 8  # texts of one check; a lost `torch.no_grad` gives one for each parameter
Program = nn.Module | Callable[..., object]


def losses(
    program: Program, gm: fx.GraphModule, inputs: tuple[tuple[object, ...], Mapping[str, object]], outside: "Outside"
) -> tuple[str, ...]:
    """Return a short text on each thing that the program does on these inputs and its graph does not.

    The inputs are those by place, and those by name.

    Each runs forward and backward once, with gradients for the inputs; once more in the other training mode if code
    that was traced reads `training`; and with or without gradients if it asks `torch.is_grad_enabled()`. The program,
    its inputs, variables outside and random states are restored. Programs without data, on fake or meta tensors, are
    not run. Effects while tracing, see `Outside`, are returned if nothing else shows them, as for a factor on a buffer
    that is still zero.
    """
    held = [*program.parameters(), *program.buffers()] if isinstance(program, nn.Module) else []
    tensors = [one for one in (*held, *tree_leaves(inputs)) if isinstance(one, torch.Tensor)]
    if any(one.is_meta or isinstance(one, FakeTensor) for one in tensors):
        return ()
    traced: list[Any] = [type(part) for part in _traced(program, gm)]
    other_mode = bool(traced) and ("training" in outside.names or any(map(reads_its_mode, traced)))
    graded = torch.is_grad_enabled()
    check = _Check(program, gm, inputs, outside.variables)
    with silence():
        found = list(check.texts(None))
        if other_mode and not found:
            name = "evaluation" if gm.training else "training"
            found = [f"in {name} mode, {text}" for text in check.texts(not gm.training)]
        if "is_grad_enabled" in outside.names and not found:
            with torch.set_grad_enabled(not graded):
                found = [f"with{'out' * graded} gradients recorded, {text}" for text in check.texts(None)]
    found = [*(found or outside.effects), *outside.fixed_in(gm)]
    more = len(found) - SHOWN
    return (*found[:SHOWN], *([f"and {more} more of this kind"] if more > 0 else []))


def _traced(program: Program, gm: fx.GraphModule) -> list[nn.Module]:
    """Return the parts of a program that are not parts of a node of its graph."""
    calls = gm.graph.find_nodes(op="call_module")
    kept = {id(part) for node in calls for part in gm.get_submodule(str(node.target)).modules()}
    parts = program.modules() if isinstance(program, nn.Module) else ()
    return [part for part in parts if id(part) not in kept]


class Outside:
    """What stands outside of a program: the variables that its code refers to, and the random states.

    As a context it restores them at its end. torch.fx runs the program while it traces, and whatever runs a graph on
    fake tensors runs the functions and modules of the user's that are nodes of it.
    """

    def __init__(self, program: object) -> None:
        self.variables, self.names = variables_of(program)
        self._program = program
        self._restore = restore_outside(self.variables)
        self._watch = _Watch({}, {})

    def __enter__(self) -> "Outside":
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Note what the program does while it is traced, and restore what is outside."""
        outside = tensors_of(self.variables)
        held = [(one, name) for name, one in outside.items()]
        trained = [(one, name) for one, name in held if one.requires_grad and one.is_leaf]
        if isinstance(self._program, nn.Module):
            held += [(one, "a tensor that the program holds") for one in tensors_held(self._program)]
            trained += [
                (one, name) for name, one in (*self._program.named_parameters(), *self._program.named_buffers())
            ]
        state = {storage_of(tensor): name for tensor, name in trained}
        self._watch = _Watch({storage_of(tensor): name for tensor, name in held} | state, state)
        try:
            with self._watch:
                yield
        finally:
            self._restore()

    @property
    def effects(self) -> Sequence[str]:
        """Return what the program wrote or drew while it was traced, since operators on tensors do not become nodes."""
        return list(dict.fromkeys(self._watch.effects))

    def fixed_in(self, gm: fx.GraphModule) -> Sequence[str]:
        """Return which parameters and buffers the graph does not follow: it has a result of them as a constant."""
        found = [self._watch.computed.get(storage_of(tensor), "") for tensor in _constants(gm).values()]
        said = [f"operators compute on {name} while the program is traced" for name in found if name]
        said += [f"a number of {name} is read while the program is traced" for name in self._watch.numbers]
        return [f"{text}, so later changes of it do not reach the graph" for text in dict.fromkeys(said)]


def _constants(gm: fx.GraphModule) -> dict[str, torch.Tensor]:
    """Return the tensors that torch.fx made constants while it traced."""
    named = {**vars(gm), **gm._buffers}
    return {name: one for name, one in named.items() if "_tensor_constant" in name and isinstance(one, torch.Tensor)}


class _Watch(TorchDispatchMode):
    """Run the operators that a program calls on real tensors while it is traced, and note what they do."""

    def __init__(self, known: Mapping[int, str], state: Mapping[int, str]) -> None:
        """Take the names of tensors by their storage, and of those that are parameters or buffers."""
        super().__init__()
        self._known, self._state = known, state
        self._alive: list[torch.Tensor] = []  # so that no storage takes the number of another
        self.effects: list[str] = []
        self.computed: dict[int, str] = {}  # storage of a result -> the parameter or buffer it was computed from
        self.numbers: list[str] = []  # parameters and buffers of which Python has read a number

    def __torch_dispatch__(
        self, func: Any, types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if is_tracing() and isinstance(func, torch._ops.OpOverload):
            written, draws = written_and_drawn(func, args, kwargs)
            said = [f"{func} writes to {self._known[one]}" for one in written if one in self._known]
            said += [f"{func} draws random numbers"] if draws else []
            self.effects += [f"{text} while the program is traced, not when the graph runs" for text in said]
            self._follow(func, (args, kwargs), result)
        return result

    def _follow(self, func: torch._ops.OpOverload, given: object, result: object) -> None:
        """Note results whose numbers depend on a parameter or buffer."""
        name = func._schema.name
        if name.endswith("_like") or name.startswith("aten::new_"):  # of the operand only the shape is read
            return
        read = [storage_of(one) for one in tree_leaves(given) if isinstance(one, torch.Tensor)]
        sources = [self._state.get(one, "") or self.computed.get(one, "") for one in read]
        source = next(filter(None, sources), "")
        if source and func is _READS_A_NUMBER:
            self.numbers.append(source)
        for tensor in tree_leaves(result) if source else ():
            if isinstance(tensor, torch.Tensor) and storage_of(tensor) not in self._known:
                self.computed[storage_of(tensor)] = source
                self._alive.append(tensor)


class _Check:
    """Run a program and its graph, one after the other, from the same state."""

    def __init__(
        self, program: Program, gm: fx.GraphModule, inputs: tuple[object, ...], variables: tuple[Variable, ...]
    ) -> None:
        self.program, self.gm, self.inputs, self.variables = program, gm, inputs, variables
        modules = [part for root in (program, gm) if isinstance(root, nn.Module) for part in root.modules()]
        self._training = [(part, part.training) for part in modules]

    def texts(self, training: bool | None) -> Iterator[str]:
        """Yield what differs, in the given training mode."""
        restores = [restore_outside(self.variables, self.program), restore_of([self.gm, self.inputs])]
        try:
            yield from self._compared(training, restores)
        finally:
            self._restore(restores)

    def _compared(self, training: bool | None, restores: Sequence[Restore]) -> Iterator[str]:
        expected, call = self._expected(training, restores)
        constants = _constants(self.gm)
        before = [one.detach().clone() for one in constants.values()]
        self._restore(restores)
        owners = (self.program, self.gm)
        seen = behaviour_of(_in_mode(self.gm, training), replace(call, owners=owners))
        failed = seen.raised or seen.backward_raised
        if failed is not None and not (expected.raised or expected.backward_raised):
            yield f"the graph raises {type(failed).__name__}, and the program does not"
            return
        yield from deviations(expected, seen, owners)
        for (name, now), then in zip(constants.items(), before, strict=True):
            if not torch.equal(now, then):
                yield f"the graph writes to {name}, a tensor that the program makes anew in each call"

    def _expected(self, training: bool | None, restores: Sequence[Restore]) -> tuple[Behaviour, Call]:
        """Run the program with gradients for its inputs, or without if it cannot run so."""
        call = Call(self.inputs, CHECK_SEED, (self.program,), self.variables, torch.is_grad_enabled())
        expected = behaviour_of(_in_mode(self.program, training), call)
        if call.differentiated and (expected.raised or expected.backward_raised):
            self._restore(restores)
            call = replace(call, differentiated=False)
            expected = behaviour_of(_in_mode(self.program, training), call)
        return expected, call

    def _restore(self, restores: Sequence[Restore]) -> None:
        for restore in restores:
            restore()
        for part, training in self._training:
            part.training = training


def _in_mode(run: Any, training: bool | None) -> Callable[..., Any]:
    def in_mode(inputs: tuple[Any, ...], keyword_inputs: Mapping[str, Any]) -> Any:
        if training is not None and isinstance(run, nn.Module):
            run.train(training)
        return run(*inputs, **keyword_inputs)

    return in_mode


def warn(lost: Sequence[str]) -> None:
    """Warn the caller of `fuse` of what the capture lost."""
    said = "; ".join(lost)
    warnings.warn(
        f"fuse: the graph of torch.fx does not do all that the program does: {said}. Change the program, capture it "
        "with torch.export and fuse that, or pass check=False if this is meant.",
        stacklevel=3,
    )
