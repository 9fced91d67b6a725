"""Find the state outside of a program that its code refers to: variables of modules and closures, class attributes.

It is found by reading code objects, without running anything. What code of Python itself or of installed packages
keeps, files, and iterators that are half used are not found.
"""

import builtins
import dis
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import fx, nn

from course_lib.capture.captured import Captured
from course_lib.capture.frozen_values import PLAIN, attributes_or, freeze
from course_lib.isolation import Restore, is_users, restore_of
from course_lib.module_hooks import hooks_of_all_modules, own_hooks

MISSING = object()
ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
_ATTRIBUTES = attributes_or(id)


@dataclass(frozen=True)
class Variable:
    """A variable outside of the program: where it is kept, and under which name."""

    label: str  # for messages
    get: Callable[[], Any]  # gives `MISSING` if there is no such variable
    put: Callable[[Any], None]


def variables_of(program: object) -> tuple[tuple[Variable, ...], frozenset[str]]:
    """Return the variables outside of a program that its code refers to, and the names that this code uses.

    Code of the user's that the program calls belongs to it. A program may be a graph, or hold some: a `Captured`.
    """
    walk = _Walk()
    walk.visit(program)
    return tuple(walk.found.values()), frozenset(walk.names)


def coroutines_of(program: object) -> list[str]:
    """Return the names of coroutines and asynchronous generators that code of the user's in a program may drive."""
    walk = _Walk()
    walk.visit(program)
    return sorted(name for name, inside in walk.coroutines.items() if inside or name in walk.names)


def restore_outside(variables: tuple[Variable, ...], *held: object) -> Restore:
    """Return a function that restores variables, what they hold, and the state of a program and of its inputs."""
    before = [(variable, variable.get()) for variable in variables]
    restore_contents = restore_of([*held, *(value for _, value in before if value is not MISSING)])

    def restore() -> None:
        for variable, value in before:
            if variable.get() is not value:
                variable.put(value)
        restore_contents()

    return restore


def values_of(variables: tuple[Variable, ...]) -> dict[str, Any]:
    """Return copies of what variables hold, by label; modules and functions are left out."""
    held = {variable.label: variable.get() for variable in variables}
    kept = {label: value for label, value in held.items() if not isinstance(value, nn.Module)}
    return {label: "no value" if value is MISSING else freeze(value, _ATTRIBUTES) for label, value in kept.items()}


def tensors_of(variables: tuple[Variable, ...]) -> dict[str, torch.Tensor]:
    """Return the tensors, parameters and buffers that variables hold, by name."""
    found: dict[str, torch.Tensor] = {}
    for variable in variables:
        value = variable.get()
        if isinstance(value, torch.Tensor):
            found[variable.label] = value
        elif isinstance(value, nn.Module):
            named = [*value.named_parameters(), *value.named_buffers()]
            found |= {f"{variable.label}.{name}": tensor for name, tensor in named}
    return found


class _Walk:
    """Visit functions and classes of the user's, and collect the variables that they refer to."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, str], Variable] = {}
        self.names: set[str] = set()  # of variables and attributes
        self.coroutines: dict[str, bool] = {}  # name -> whether another function defines it
        self._seen: set[int] = set()

    def visit(self, value: Any) -> None:
        """Visit a program, or whatever a variable holds."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, MethodType):
            self.visit(value.__func__)
            self.visit(value.__self__)
        elif isinstance(value, functools.partial):
            self.visit(value.func)
        elif isinstance(value, (staticmethod, classmethod)):
            self.visit(value.__func__)
        elif isinstance(value, property):
            self.visit(value.fget)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, nn.Module):
            self._module(value)
        elif isinstance(value, Captured):
            for graph in value.graphs.values():
                self.visit(graph)
        elif isinstance(value, torch.export.ExportedProgram):
            self.visit(value.graph_module)
        elif is_users(type(value).__module__):
            self.visit(type(value))

    def _module(self, module: nn.Module) -> None:
        for part in module.modules():
            self.visit(type(part))
            if isinstance(part, fx.GraphModule):
                for node in part.graph.nodes:
                    self.visit(node.target)
            self._functions(vars(part))
            for table in own_hooks(part):
                self._functions(table)
        for table in hooks_of_all_modules():
            self._functions(table)

    def _functions(self, table: Mapping[Any, object]) -> None:
        for held in list(table.values()):
            if isinstance(held, (FunctionType, MethodType, functools.partial)):
                self.visit(held)

    def _class(self, cls: type) -> None:
        for one in cls.__mro__:
            if not is_users(one.__module__):
                continue
            for name, value in list(vars(one).items()):
                if not name.startswith("__") and isinstance(value, (*PLAIN, list, dict, set, torch.Tensor)):
                    self._add(id(one), f"{one.__name__}.{name}", name, _attribute(one, name))
                elif not isinstance(value, type):
                    self.visit(value)

    def _function(self, function: FunctionType) -> None:
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            self.visit(wrapped)
        if not is_users(function.__module__ or ""):
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._add(id(cell), name, name, _cell(cell))
        label = function.__name__
        held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), function.__dict__]
        for number, value in enumerate(held):
            if isinstance(value, (list, dict, set, torch.Tensor)):
                self._add(id(function), f"{label}'s attributes and defaults", str(number), _constant(value))
        for code in _codes(function.__code__):
            self.names |= {*code.co_names}
            if code.co_flags & ASYNCHRONOUS:
                self.coroutines[code.co_name] = code is not function.__code__
            names = {step.argval for step in dis.get_instructions(code) if step.opname.endswith("_GLOBAL")}
            for name in names:
                self._global(function.__globals__, name, code.co_names)

    def _global(self, variables: dict[str, Any], name: str, attributes: Sequence[str]) -> None:
        value = variables.get(name, MISSING)
        if isinstance(value, ModuleType):
            if is_users(value.__name__):
                for attribute in {*attributes} & vars(value).keys():
                    if not isinstance(vars(value)[attribute], ModuleType):
                        self._add(id(value), f"{name}.{attribute}", attribute, _entry(vars(value), attribute))
        elif value is not MISSING or not hasattr(builtins, name):
            self._add(id(variables), name, name, _entry(variables, name))

    def _add(self, place: int, label: str, name: str, access: tuple[Callable[[], Any], Callable[[Any], None]]) -> None:
        if (place, name) in self.found:
            return
        self.found[place, name] = Variable(label, *access)
        self.visit(access[0]())


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


Access = tuple[Callable[[], Any], Callable[[Any], None]]


def _entry(variables: dict[str, Any], name: str) -> Access:
    def put(value: Any) -> None:
        if value is MISSING:
            variables.pop(name, None)
        else:
            variables[name] = value

    return lambda: variables.get(name, MISSING), put


def _cell(cell: CellType) -> Access:
    def get() -> Any:
        try:
            return cell.cell_contents
        except ValueError:  # nothing was assigned yet
            return MISSING

    def put(value: Any) -> None:
        if value is not MISSING:
            cell.cell_contents = value

    return get, put


def _attribute(cls: type, name: str) -> Access:
    return lambda: getattr(cls, name, MISSING), lambda value: setattr(cls, name, value)


def _constant(value: Any) -> Access:
    return lambda: value, lambda _: None
