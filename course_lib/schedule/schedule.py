"""`Schedule`: the optimisations of a model, written separately from the model."""

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import fx, nn

from course_lib.errors import ScheduleError
from course_lib.module_hooks import has_own_hooks
from course_lib.schedule.layers import Checkpointed, FunctionModule, name_of, separate_bias
from course_lib.schedule.matches import Matches, ModulePattern, PatternMatch, find_matches
from course_lib.schedule.replacements import (
    Compiler,
    check_name,
    current,
    prepare_fused,
    prepare_kernel,
    prepare_module,
    put_in_place,
)
from course_lib.schedule.traced_part import Leaf, trace_module


@dataclass(frozen=True)
class Step:
    """One thing that a schedule did."""

    action: str  # the method, such as "fuse"
    path: str  # of the sub-module, "" for the whole model
    detail: str

    def __str__(self) -> str:
        return f"{self.action} {self.path or 'the model'}: {self.detail}"


@dataclass(frozen=True, repr=False)
class History:
    """All steps of a schedule, the first one first."""

    steps: tuple[Step, ...]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __getitem__(self, number: int) -> Step:
        return self.steps[number]

    def __str__(self) -> str:
        return "\n".join(f"{n}. {step}" for n, step in enumerate(self.steps, 1)) or "nothing was scheduled yet"

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form


def describe_state_change(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """Return, in words, how the names in a state dict differ."""
    gone, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    if not gone and not new:
        return "names in the state dict are as before"
    return f"the state dict lost {', '.join(gone) or 'nothing'} and gained {', '.join(new) or 'nothing'}"


@dataclass
class _Model:
    """The state that all parts of one schedule share."""

    original: nn.Module
    root: nn.Module
    steps: list[Step] = field(default_factory=list)


class Schedule:
    """A model, or a part of it, with methods that change how the result is computed, but not the result.

    Create one with `create_schedule`. Each method returns the schedule on which it was called. If a method raises
    `ScheduleError`, nothing has changed.
    """

    def __init__(self, model: _Model, path: str = "") -> None:
        self._model = model
        self.path = path  # of this part, "" for the whole model

    def __getitem__(self, path: str) -> "Schedule":
        """Return the part at a path such as "bert.encoder.layer.0", relative to this part, whose path is ""."""
        full = ".".join(filter(None, (self.path, str(path))))
        walked: nn.Module = self._model.root
        for number, name in enumerate(full.split(".") if full else ()):
            children = dict(walked.named_children())
            if name not in children:
                where = ".".join(full.split(".")[:number]) or "the model"
                raise ScheduleError(
                    f"There is no part {full!r}: {where}, a {type(walked).__name__}, has "
                    f"{', '.join(children) or 'no parts'}; give one of these."
                )
            walked = children[name]
        return Schedule(self._model, full)

    @property
    def mod(self) -> nn.Module:
        """Return the module at this path, as it is now."""
        return self._model.root.get_submodule(self.path) if self.path else self._model.root

    @property
    def original(self) -> nn.Module:
        """Return the model that was given to `create_schedule`, which no method changes."""
        return self._model.original

    @property
    def history(self) -> History:
        """Return the steps so far, of this part and all others of the same model."""
        return History(tuple(self._model.steps))

    def decompose(self) -> "Schedule":
        """Let this linear layer add its bias in a separate operator, which can be fused with later operators.

        The layer holds the same Parameters, under the same names. Decompose before you trace; in a graph that calls
        the layer as one node, decompose and trace again.
        """
        separated = separate_bias(self.path, self.mod)
        parents = itertools.accumulate(self.path.split(".")[:-1], lambda a, b: f"{a}.{b}")
        paths = ["", *parents]
        traced = next((p for p in paths if isinstance(self._model.root.get_submodule(p), fx.GraphModule)), None)
        if traced is not None and not self._is_one_node_of(traced):
            raise ScheduleError(
                f"decompose got {self.path}, but {traced or 'the model'} is traced already, and its graph would not "
                "show the change; decompose first, then trace."
            )
        self._put(separated)
        return self._log("decompose", "a product, then the sum with the bias")

    def _is_one_node_of(self, traced: str) -> bool:
        """Tell whether the graph at the path `traced`, which holds this part, calls it as a module."""
        graph: fx.Graph = self._model.root.get_submodule(traced).graph  # type: ignore[assignment]
        inside = self.path.removeprefix(f"{traced}.") if traced else self.path
        return any(node.target == inside for node in graph.find_nodes(op="call_module"))

    def trace(self, *, flatten: bool = True, leaf_modules: Sequence[Leaf] = ()) -> "Schedule":
        """Turn this part into a graph; everything around it, and all names in the state dict, stay as they are.

        With `flatten`, the graph shows the operators of all parts down to those of torch.nn; without, each direct
        part stays one node. `leaf_modules` names further parts to keep whole, by path from here, by class, or by the
        name of a class. A part that was traced before is traced again.

        A graph has no branches: an optional argument, such as a mask, is traced as a given argument. The history lists
        these arguments. If the program checks whether one is None, keep that part whole.
        """
        graph_module = trace_module(self.path, self.mod, flatten, leaf_modules)
        self._put(graph_module)
        calls = sum(node.op.startswith("call") for node in graph_module.graph.nodes)
        optional = [str(node.target) for node in graph_module.graph.find_nodes(op="placeholder") if node.args]
        return self._log("trace", f"{calls} calls" + (f", taking {', '.join(optional)} as given" if optional else ""))

    def find(self, pattern: Callable[..., object]) -> Matches:
        """Return the matches of `pattern`, a plain PyTorch function, in this part's graph.

            >>> schedule = create_schedule(nn.Sequential(nn.Linear(2, 2), nn.GELU()))
            >>> schedule["0"].decompose()
            the part 0, a SeparateBiasLinear
            >>> schedule.trace().find(lambda x, bias: nn.functional.gelu(bias + x))
            1 found, 0 left alone
              <lambda> at the model: add, gelu

        The function's parameters match any value, numbers and flags too: `F.dropout(x, p, training)` matches each
        dropout, `F.dropout(x, 0.1)` one that always drops. A function and the torch.nn module that computes the same
        are equal, and so are both orders of a sum; `call_module(regex, x)` stands for a module by name. Matches that
        may not be replaced, for instance because a value in between has other users, are in `rejected`, with the
        reason.
        """
        if not callable(pattern) or isinstance(pattern, nn.Module):
            raise ScheduleError(
                f"find got {pattern!r}; it expects a function of PyTorch operators, such as lambda x: torch.relu(x), "
                "or lambda x: call_module('dropout.*', x) for a module by its name."
            )
        return find_matches(self.path, self._graph("find"), ModulePattern(pattern))

    def fuse(
        self, match: PatternMatch | Matches, *, compiler: Compiler = "inductor", name: str = "fused"
    ) -> "Schedule":
        """Replace the nodes of each match by one call.

        `compiler` is "inductor", "torchscript", "eager" (the original operators in a separate module), or a function,
        such as an operator of `course_lib.kernels`, that takes the operands of the pattern in its order. If both orders
        of a sum match, the operands follow the order in the pattern. Parameters stay where they are in the state dict;
        dropout follows `train()` and `eval()` as before.
        """
        check_name(name)
        matches, graph_module = self._current("fuse", match)
        moved: dict[fx.Node, fx.Node] = {}
        prepared = [prepare_fused(one, compiler) for one in matches]
        how = compiler if isinstance(compiler, str) else name_of(compiler)
        for one, module in zip(matches, prepared, strict=True):
            nodes = ", ".join(node.name for node in one.nodes)
            self._log("fuse", f"{nodes} → {put_in_place(graph_module, one, module, name, moved)}, by {how}")
        return self

    def replace(
        self,
        new: nn.Module | Callable[..., Any],
        match: PatternMatch | Matches | None = None,
        *,
        name: str = "replaced",
    ) -> "Schedule":
        """Replace this part, or the matches in its graph, by a module or a function.

        It gets the arguments of the part, or the operands of the pattern in its order. A module keeps its parameters,
        takes the part's mode, and can replace only one match. The history records changes of names in the state dict.
        """
        if not isinstance(new, nn.Module) and not callable(new):
            raise ScheduleError(f"replace got {new!r}; it expects a module or a function.")
        before = self._model.root.state_dict()
        if match is None:
            self._replace_whole(new)
        else:
            check_name(name)
            self._replace_matches(new, match, name)
        change = describe_state_change(before, self._model.root.state_dict())
        return self._log("replace", f"by {name_of(new)}; {change}")

    def checkpoint(self) -> "Schedule":
        """Save only this part's inputs for the backward pass, and compute the part again during it."""
        module = self.mod
        if isinstance(module, Checkpointed):
            raise ScheduleError(f"checkpoint got {self.path or 'the model'}, which is checkpointed already.")
        if isinstance(module, (nn.ModuleList, nn.ModuleDict)):
            raise ScheduleError(
                f"checkpoint got {self.path}, a {type(module).__name__}, which is never called; checkpoint its parts."
            )
        self._put(Checkpointed(module))
        return self._log("checkpoint", f"{type(module).__name__} is computed again in the backward pass")

    def build(self) -> nn.Module:
        """Return the scheduled model, which shares its parameters with the original and runs without the schedule."""
        return self._model.root

    def __repr__(self) -> str:
        return f"the part {self.path}, a {type(self.mod).__name__}" if self.path else f"a {type(self.mod).__name__}"

    def _graph(self, action: str) -> fx.GraphModule:
        module = self.mod
        if not isinstance(module, fx.GraphModule):
            raise ScheduleError(
                f"{action} got {self.path or 'the model'}, a {type(module).__name__} that is not traced; call trace() "
                "on it first."
            )
        return module

    def _current(self, action: str, match: PatternMatch | Matches) -> tuple[list[PatternMatch], fx.GraphModule]:
        matches, graph_module = list(match) if isinstance(match, Matches) else [match], self._graph(action)
        if not matches:
            raise ScheduleError(
                "fuse and replace got no match; print what find returned to see what was left alone, and why."
            )
        return [current(one, self.path, graph_module) for one in matches], graph_module

    def _replace_whole(self, new: nn.Module | Callable[..., Any]) -> None:
        old = self.mod
        if has_own_hooks(old):
            raise ScheduleError(f"replace got {self.path or 'the model'}, which has hooks that would be lost.")
        if not isinstance(new, nn.Module):
            if old.state_dict():
                raise ScheduleError(
                    f"replace got the function {name_of(new)} for {self.path or 'the model'}, which has parameters; "
                    "give a module that holds them, or find a pattern and replace its match."
                )
            new = FunctionModule(new)
        self._put(new.train(old.training))

    def _replace_matches(self, new: nn.Module | Callable[..., Any], match: PatternMatch | Matches, name: str) -> None:
        matches, graph_module = self._current("replace", match)
        if isinstance(new, nn.Module) and len(matches) > 1:
            raise ScheduleError(
                f"replace got one {type(new).__name__} for {len(matches)} matches; give each match a module of its own."
            )
        prepared = [
            prepare_module(one, new) if isinstance(new, nn.Module) else prepare_kernel(one, new) for one in matches
        ]
        moved: dict[fx.Node, fx.Node] = {}
        for one, module in zip(matches, prepared, strict=True):
            module[0].train(graph_module.training)
            put_in_place(graph_module, one, module, name, moved)

    def _put(self, module: nn.Module) -> None:
        if self.path:
            parent, _, name = self.path.rpartition(".")
            self._model.root.get_submodule(parent).add_module(name, module)
        else:
            self._model.root = module

    def _log(self, action: str, detail: str) -> "Schedule":
        self._model.steps.append(Step(action, self.path, detail))
        return self


def create_schedule(model: nn.Module) -> Schedule:
    """Return a schedule for `model`, which itself is never changed.

        >>> schedule = create_schedule(nn.Sequential(nn.Linear(2, 2), nn.GELU()))
        >>> linear = schedule["0"].decompose()
        >>> matches = schedule.trace().find(lambda x, bias: nn.functional.gelu(x + bias))
        >>> schedule.fuse(matches, compiler="eager").history
        1. decompose 0: a product, then the sum with the bias
        2. trace the model: 3 calls
        3. fuse the model: add, _1 → fused_0, by eager
        >>> model = schedule.build()

    The schedule works on a copy of the model's structure that has the same Parameter and buffer objects, so both train
    together and one state dict fits both. Raises `ScheduleError` if the structure cannot be copied.
    """
    if not isinstance(model, nn.Module):
        raise ScheduleError(f"create_schedule got a {type(model).__name__}; it expects a torch.nn.Module.")
    tensors = [*model.parameters(), *model.buffers()]
    try:
        return Schedule(_Model(model, copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})))
    except Exception as error:  # a module may hold anything
        raise ScheduleError(
            f"create_schedule got a {type(model).__name__} whose structure cannot be copied "
            f"({type(error).__name__}: {error}); take away what copy.deepcopy refuses."
        ) from error
