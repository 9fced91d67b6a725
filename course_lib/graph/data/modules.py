"""Write and read the modules that a graph calls: their class and the arguments of their constructor, nothing else.

A module is written only if its class is exactly one of the classes below and it has no hooks. Then a module that is
rebuilt from its arguments and its tensors has the same behaviour.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from course_lib.graph.data.arguments import ValueReader, check_path, reason, refuse, shown, write_value
from course_lib.module_hooks import has_hooks

PREFIX = "torch.nn."


@dataclass(frozen=True)
class Kind:
    """Describe the values that one argument of a constructor accepts."""

    says: str
    accepts: Callable[[object], bool]


def _whole(least: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and least <= value < 2**31


def _sizes(value: object) -> bool:
    if type(value) is tuple:
        return 0 < len(value) <= 8 and all(_whole(0)(part) for part in value)
    return _whole(0)(value)


def _optional(kind: Kind) -> Kind:
    return Kind(f"{kind.says} or None", lambda value: value is None or kind.accepts(value))


def _one_of(*texts: str) -> Kind:
    return Kind("one of " + ", ".join(texts), lambda value: type(value) is str and value in texts)


COUNT = Kind("a positive integer", _whole(1))
INDEX = Kind("an integer", lambda value: type(value) is int and abs(value) < 2**31)
REAL = Kind("a number", lambda value: type(value) in (int, float))
FLAG = Kind("True or False", lambda value: type(value) is bool)
SIZES = Kind("an integer or a tuple of them", _sizes)
PADDING = Kind(
    "an integer, a tuple of them, 'same' or 'valid'", lambda value: _sizes(value) or value in ("same", "valid")
)

_CONVOLUTION = {
    "in_channels": COUNT,
    "out_channels": COUNT,
    "kernel_size": SIZES,
    "stride": SIZES,
    "padding": PADDING,
    "dilation": SIZES,
    "groups": COUNT,
    "bias": FLAG,
    "padding_mode": _one_of("zeros", "reflect", "replicate", "circular"),
}
_BATCH_NORM = {
    "num_features": COUNT,
    "eps": REAL,
    "momentum": _optional(REAL),
    "affine": FLAG,
    "track_running_stats": FLAG,
}
_DROPOUT = {"p": REAL, "inplace": FLAG}

MODULES: Mapping[str, Mapping[str, Kind]] = {
    "AdaptiveAvgPool2d": {"output_size": SIZES},
    "AvgPool2d": {
        "kernel_size": SIZES,
        "stride": SIZES,
        "padding": SIZES,
        "ceil_mode": FLAG,
        "count_include_pad": FLAG,
    },
    "BatchNorm1d": _BATCH_NORM,
    "BatchNorm2d": _BATCH_NORM,
    "Conv1d": _CONVOLUTION,
    "Conv2d": _CONVOLUTION,
    "Dropout": _DROPOUT,
    "Dropout1d": _DROPOUT,
    "Dropout2d": _DROPOUT,
    "ELU": {"alpha": REAL, "inplace": FLAG},
    "Embedding": {
        "num_embeddings": COUNT,
        "embedding_dim": COUNT,
        "padding_idx": _optional(INDEX),
        "max_norm": _optional(REAL),
        "norm_type": REAL,
        "scale_grad_by_freq": FLAG,
        "sparse": FLAG,
    },
    "Flatten": {"start_dim": INDEX, "end_dim": INDEX},
    "GELU": {"approximate": _one_of("none", "tanh")},
    "GroupNorm": {"num_groups": COUNT, "num_channels": COUNT, "eps": REAL, "affine": FLAG},
    "Hardswish": {"inplace": FLAG},
    "Identity": {},
    "LayerNorm": {"normalized_shape": SIZES, "eps": REAL, "elementwise_affine": FLAG, "bias": FLAG},
    "LeakyReLU": {"negative_slope": REAL, "inplace": FLAG},
    "Linear": {"in_features": COUNT, "out_features": COUNT, "bias": FLAG},
    "LogSoftmax": {"dim": _optional(INDEX)},
    "MaxPool2d": {
        "kernel_size": SIZES,
        "stride": SIZES,
        "padding": SIZES,
        "dilation": SIZES,
        "return_indices": FLAG,
        "ceil_mode": FLAG,
    },
    "Mish": {"inplace": FLAG},
    "RMSNorm": {"normalized_shape": SIZES, "eps": _optional(REAL), "elementwise_affine": FLAG},
    "ReLU": {"inplace": FLAG},
    "SiLU": {"inplace": FLAG},
    "Sigmoid": {},
    "Softmax": {"dim": _optional(INDEX)},
    "Softplus": {"beta": REAL, "threshold": REAL},
    "Tanh": {},
}
_GIVES = {"bias": "bias", "affine": "weight", "elementwise_affine": "weight"}
"""A flag of a constructor, and the tensor that the module has because of it, until somebody takes it away."""
_TAKES_DEVICE = ("BatchNorm", "Conv", "Embedding", "GroupNorm", "LayerNorm", "Linear", "RMSNorm")


def write_module(module: object, where: str) -> dict[str, object]:
    """Return `{"class", "arguments", "training"}` of a module; raise `GraphError` if it may not be written."""
    name = type(module).__name__
    if name not in MODULES or type(module) is not getattr(nn, name) or not isinstance(module, nn.Module):
        refuse(where, f"it calls {shown(module)}, a module that cannot be written as data; allowed are {_list()}")
    if has_hooks(module):
        refuse(where, f"it calls a {name} with hooks or with a forward of its own; remove them first")
    arguments = {}
    for argument, kind in MODULES[name].items():
        value = getattr(module, _GIVES.get(argument, argument))
        if argument in _GIVES:
            value = value is not None
        if not kind.accepts(tuple(value) if isinstance(value, list) else value):
            refuse(where, f"its {name} has {argument} = {shown(value)}, and {kind.says} is expected")
        arguments[argument] = write_value(value, where)
    return {"class": PREFIX + name, "arguments": arguments, "training": module.training}


def read_module(entry: object, where: str) -> nn.Module:
    """Build the module of an entry without allocating memory: its tensors are on the meta device and replaced later."""
    if type(entry) is not dict or not {"class", "arguments"} <= entry.keys() <= {"class", "arguments", "training"}:
        refuse(where, 'a module is written as {"class", "arguments", "training"}')
    name = entry["class"].removeprefix(PREFIX) if type(entry["class"]) is str else ""
    training = entry.get("training", True)
    if name not in MODULES or entry["class"] != PREFIX + name:
        refuse(where, f"{shown(entry['class'])} is no module that a graph may call; allowed are {_list()}")
    if type(training) is not bool:
        refuse(where, "its training flag is neither true nor false")
    arguments = _read_arguments(entry["arguments"], MODULES[name], where)
    device = {"device": "meta"} if name.startswith(_TAKES_DEVICE) else {}
    try:
        module: nn.Module = getattr(nn, name)(**arguments, **device)
    except Exception as error:  # any error of a constructor is caused by the arguments that were sent
        refuse(where, f"{name} refused its arguments ({reason(error)})")
    return module.train(training)


def _read_arguments(written: object, kinds: Mapping[str, Kind], where: str) -> dict[str, object]:
    if type(written) is not dict:
        refuse(where, "the arguments of a module are written as an object")
    reader = ValueReader({})
    arguments = {}
    for name, value in written.items():
        if name not in kinds:
            refuse(where, f"{shown(name)} is no argument of this module; it takes {', '.join(kinds) or 'none'}")
        arguments[name] = reader.read(value, where)
        if not kinds[name].accepts(arguments[name]):
            refuse(where, f"its argument {name} is not {kinds[name].says}")
    return arguments


def tensors_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return the module's own parameters and buffers by name."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _list() -> str:
    return PREFIX + "{" + ", ".join(MODULES) + "}"


class Owner:
    """Build the module that owns all modules and tensors of a graph, from checked entries."""

    def __init__(self) -> None:
        """Start with an empty module."""
        self.root = torch.nn.Module()
        self._built: dict[str, torch.Tensor] = {}

    def add_modules(self, entries: Mapping[str, object]) -> dict[str, torch.Tensor]:
        """Build the modules and return, by path, the tensors (on the meta device) that they expect."""
        expected: dict[str, torch.Tensor] = {}
        for path, entry in entries.items():
            module = read_module(entry, f"Module {path!r}")
            container, name = self._place(path, f"Module {path!r}")
            container.add_module(name, module)
            expected.update({f"{path}.{name}": tensor for name, tensor in tensors_of(module).items()})
        return expected

    def add_tensor(self, path: str, tensor: torch.Tensor, *, parameter: bool, expected: torch.Tensor | None) -> None:
        """Register one parameter or buffer, in the module that expects it or in a plain container."""
        where = f"Tensor {path!r}"
        if expected is None:
            container, name = self._place(path, where)
            if parameter:
                container.register_parameter(name, tensor)  # type: ignore[arg-type]
            else:
                container.register_buffer(name, tensor)
            return
        if isinstance(expected, torch.nn.Parameter) != parameter or expected.shape != tensor.shape:
            kind = "parameter" if isinstance(expected, torch.nn.Parameter) else "buffer"
            refuse(where, f"its module expects a {kind} of shape {tuple(expected.shape)}, not {tuple(tensor.shape)}")
        module, _, name = path.rpartition(".")
        setattr(self.root.get_submodule(module), name, tensor)

    def _place(self, path: str, where: str) -> tuple[torch.nn.Module, str]:
        *parents, name = path.split(".")
        container = self.root
        for part in parents:
            if part not in container._modules:
                self._check_free(container, part, where)
                container.add_module(part, torch.nn.Module())
            container = container.get_submodule(part)
            if type(container) is not torch.nn.Module:
                refuse(where, "its path leads through another module, which owns only its own tensors")
        self._check_free(container, name, where)
        return container, name

    @staticmethod
    def _check_free(container: torch.nn.Module, name: str, where: str) -> None:
        if hasattr(container, name):
            refuse(where, "something else is at its path already")


def read_tensors(entries: Mapping[str, object], tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return a parameter or plain tensor for each entry; tied entries give the same object."""
    built: dict[str, torch.Tensor] = {}
    for path, entry in entries.items():
        where = f"Tensor {path!r}"
        check_path(path, where)
        if type(entry) is not dict or not {"parameter"} <= entry.keys() <= {"parameter", "requires_grad", "same_as"}:
            refuse(where, 'a tensor is written as {"parameter": true or false}')
        parameter, requires_grad = entry["parameter"], entry.get("requires_grad", True)
        if type(parameter) is not bool or type(requires_grad) is not bool:
            refuse(where, "parameter and requires_grad are true or false")
        if "same_as" in entry:
            built[path] = _tied(entry["same_as"], built, parameter=parameter, where=where)
        else:
            built[path] = _own(tensors.get(path), parameter=parameter, requires_grad=requires_grad, where=where)
    given = {path for path in entries if "same_as" not in entries[path]}  # type: ignore[operator]
    if tensors.keys() != given:
        refuse("The tensors", f"{len(tensors)} came with the graph, which lists {len(given)}, or their paths differ")
    return built


def _tied(first: object, built: Mapping[str, torch.Tensor], *, parameter: bool, where: str) -> torch.Tensor:
    if type(first) is not str or first not in built or isinstance(built[first], torch.nn.Parameter) != parameter:
        refuse(where, f"no earlier tensor of its kind is at {shown(first)}, so it cannot be the same")
    return built[first]


def _own(tensor: object, *, parameter: bool, requires_grad: bool, where: str) -> torch.Tensor:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not isinstance(tensor, torch.Tensor):
        refuse(where, "no plain tensor came with the graph for its path")
    if tensor.layout is not torch.strided:
        refuse(where, "it is sparse")
    if parameter and not (tensor.is_floating_point() or tensor.is_complex()):
        refuse(where, f"a parameter of {tensor.dtype} cannot have a gradient; make it a buffer")
    return torch.nn.Parameter(tensor.detach(), requires_grad=requires_grad) if parameter else tensor.detach()
