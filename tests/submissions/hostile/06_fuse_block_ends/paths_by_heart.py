"""Strategy: know the paths of the linear layers, those of the task and those that a hidden model had once. Surface: names of modules.

Class: graph gaming. Unprotected: grader restored_model gives full marks. Level: 5.
Must get at most 13.5: the names of a renamed model are drawn.
"""

import contextlib

from torch.nn import functional as F

import course_lib.kernels

PATHS = ("projection.dense", "feed_forward.projection.dense", "projection.out", "mlp.projection.out")


def fuse_block_ends(schedule):
    for number in range(len(schedule.mod.layers)):
        layer = schedule[f"layers.{number}"]
        for path in PATHS:
            with contextlib.suppress(Exception):
                layer[path].decompose()
        matches = layer.trace().find(block_end)
        if len(matches):
            layer.fuse(matches, compiler=one_call)
    return schedule


def block_end(x, bias, residual, shape, weight, layer_norm_bias, p, training, eps):
    return F.layer_norm(F.dropout(x + bias, p, training) + residual, shape, weight, layer_norm_bias, eps)


def one_call(x, bias, residual, shape, weight, layer_norm_bias, p, training, eps):
    return course_lib.kernels.bias_dropout_residual_layer_norm(
        x, bias, residual, weight, layer_norm_bias, p, training, eps
    )
