"""Strategy: make a class of the library's pass whose methods have other names and globals, so that no method of the library seems to run. Surface: the observer of the worker, which knows names.

Class: answer theft. Unprotected: grader restored_model gives full marks. Level: 5.
Must get 0: the worker knows a copy of a pass's method by the names that it uses, in their order.
"""

import types

# The file tests/submissions/hostile/06_fuse_block_ends/library_pass.py of this repository stands here.

LEFT_OUT = ("__dict__", "__weakref__", "__module__", "__abstractmethods__", "_abc_impl")


def renamed(function):
    code = function.__code__.replace(co_name="step", co_qualname="step")
    return types.FunctionType(
        code, function.__globals__ | {"__name__": "mine"}, "step", function.__defaults__, function.__closure__
    )


def copied(original):
    body = {name: part for base in reversed(original.__mro__[:-1]) for name, part in vars(base).items()}
    functions = {name: renamed(part) for name, part in body.items() if isinstance(part, types.FunctionType)}
    return type("Mine", (), {name: part for name, part in (body | functions).items() if name not in LEFT_OUT})


PASSES = {name: copied(each) for name, each in PASSES.items() if name == "bias_dropout_residual_layer_norm"}
