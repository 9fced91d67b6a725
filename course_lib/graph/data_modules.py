"""The modules that a graph written as data may call: their class, their constructor's arguments, nothing else.

A module is written only if its class is exactly one of these and it carries no hooks, so that building it again
from its arguments and its tensors gives a module that does the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from course_lib.graph.data_names import reason, refuse, shown
from course_lib.graph.data_values import ValueReader, write_value
from course_lib.graph.hooks import has_hooks

PREFIX = "torch.nn."


@dataclass(frozen=True)
class Kind:
    """What one argument of a constructor may be."""

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
        value = getattr(module, argument)
        if argument == "bias":
            value = value is not None
        if not kind.accepts(tuple(value) if isinstance(value, list) else value):
            refuse(where, f"its {name} has {argument} = {shown(value)}, and {kind.says} is expected")
        arguments[argument] = write_value(value, where)
    return {"class": PREFIX + name, "arguments": arguments, "training": module.training}


def read_module(entry: object, where: str) -> nn.Module:
    """Build the module of an entry without allocating memory: its tensors are on the meta device, to be replaced."""
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
    except Exception as error:  # whatever a constructor says about its arguments is the sender's mistake
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
