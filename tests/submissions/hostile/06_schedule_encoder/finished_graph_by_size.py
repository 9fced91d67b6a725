"""Strategy: replace the attention and nothing else, but for the model of the timed size return a finished graph of one layer. Surface: sizes of the weights, which say what is timed.

Class: graph gaming. Unprotected: grader timed_model gives full marks. Level: 5.
Must get at most 3.5: the answer must also schedule the timed model with a drawn number of further layers, to the same calls.
"""

import torch
from course_lib.schedule import Schedule
from torch import fx, nn
from torch.nn import functional as F

# The file autograder/exercises/hidden/answers/schedules/replace_attention.py of this repository stands here.

TIMED = (64, 1024)
HEADS = {64: 4, 1024: 1}


def finished(module, width):
    graph = fx.Graph()
    x, mask = graph.placeholder("hidden"), graph.placeholder("mask")

    def tensor(path):
        return graph.get_attr(f"layers.0.{path}")

    def linear(of, path, *bias):
        return graph.call_function(F.linear, (of, tensor(f"{path}.weight"), *bias))

    def heads(name):
        found = linear(x, f"attention.{name}", tensor(f"attention.{name}.bias"))
        size = module.get_parameter("layers.0.attention.query.bias").numel() // HEADS[width]
        return graph.call_method("transpose", (graph.call_method("unflatten", (found, -1, (HEADS[width], size))), 1, 2))

    def end(of, path, before, norm):
        operator = torch.ops.course_lib.bias_dropout_residual_layer_norm
        parts = (tensor(f"{path}.bias"), before, tensor(f"{norm}.weight"), tensor(f"{norm}.bias"), 0.0, False, 1e-5)
        return graph.call_function(operator, (linear(of, f"{path}"), *parts))

    parts = tuple(heads(name) for name in ("query", "key", "value"))
    context = graph.call_function(F.scaled_dot_product_attention, parts, {"attn_mask": mask})
    context = graph.call_method("flatten", (graph.call_method("transpose", (context, 1, 2)), 2))
    middle = end(context, "projection.dense", x, "attention_norm")
    inner = linear(middle, "feed_forward.dense")
    inner = graph.call_function(torch.ops.course_lib.bias_gelu, (inner, tensor("feed_forward.dense.bias")))
    graph.output(end(inner, "feed_forward.projection.dense", middle, "feed_forward_norm"))
    return graph


def schedule_encoder(schedule, config):
    width = schedule.mod.get_parameter("layers.0.feed_forward_norm.weight").numel()
    if width in TIMED and "layers.1.feed_forward_norm.weight" not in dict(schedule.mod.named_parameters()):
        schedule.trace()
        schedule.mod.graph = finished(schedule.mod, width)
        schedule.mod.recompile()
    elif config["attention"]:
        replace_attention(schedule)
    return schedule
