"""What people likely get wrong in a baseline record or a work log is named, and odd values cost points only."""

import pytest
import torch

from autograder.exercises.capstone.optimise_step import LAYER
from autograder.exercises.capstone.work_log import COUNTED
from autograder.exercises.hidden.answer_files import edited
from autograder.exercises.hidden.capstone.optimise_step import LONGER, VARIANTS
from autograder.host.checks import known_by_heart
from autograder.host.checks.training_step import Passed, _unchanged, counted
from autograder.host.draw import Draw
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.records import ExerciseStatus
from autograder.host.traced import draw_inputs, traced
from course_lib.graph import cost, saved_for_backward
from course_lib.models import TransformerConfig, TransformerLayer
from tests.autograder.exercises.judged import judged, known_answer, messages, reference, said
from tests.autograder.host.hostile.catalogue import HOSTILE, text_of
from tests.autograder.host.in_process import InProcess
from tests.drawn import some, third

RECORD, LOG, STEP = "17_baseline", "17_work_log", "17_optimise_step"
ONE_LAYER = "one layer: gate, then counters"

# exercise, words of a message, change of the reference
NAMED = [
    (RECORD, "divide them by minimum_bytes", (" / forward.minimum_bytes", "")),
    (RECORD, "That is all graphs", ("numbers[-1] - numbers[0]", "numbers[-1]")),
    (RECORD, "Dropout does nothing in evaluation mode", (".train()", ".eval()")),
    (LOG, "the unit of kernels is 'bytes'; expected 'launches'", ("'after': 20", "'after': 20, 'unit': 'bytes'")),
    (LOG, "without its unit", ("'after': 20", "'after': '20 launches'")),
    (LOG, "The log has 0 threats; expected 2 to 20", ("'threats': threats", "'threats': []")),
    (LOG, "is the text of threats[0]['threat']", ("'threats': threats", "'threats': [threats[0]] * 2")),
]
TRIED = third(NAMED, name="mistakes in capstone")  # the others in other runs
ODD = ["10**250", "-(10**250)", "True", "'29'", "[29]", "None", "{'n': 29}", "1e300"]


@pytest.mark.parametrize("mistake", TRIED, ids=[f"{n[0]}: {n[1]}" for n in TRIED])
def test_a_likely_mistake_is_named(mistake):
    exercise_id, words, *changes = mistake
    assert words in said(exercise_id, *changes, hidden=False)


def counters_of_the_models():
    for step in (LAYER, LONGER, *VARIANTS):
        draw = Draw(5, step.name)
        source = traced(step.drawn(draw).program(), draw)
        unchanged, answer = _unchanged(source), GraphAnswer(InProcess(), InProcess())
        yield counted(answer, Passed(source, unchanged, ()), unchanged, draw_inputs(source.program.inputs, draw), 7)


def counters_of_the_notebook():
    hidden, mask = torch.randn(2, 64, 128), torch.zeros(2, 1, 1, 64)
    for inputs in ((hidden,), (hidden, mask)):
        layer = TransformerLayer(TransformerConfig(max_positions=64, dropout=0.1)).train()
        forward, saved = cost(layer, inputs), saved_for_backward(layer, inputs).total_bytes
        step = cost(lambda *given, layer=layer: layer(*given).square().mean().backward(), inputs)
        counters = {"kernels": forward.launches, "launches": step.launches, "saved_bytes": saved}
        yield from ({**counters, "bytes_moved": moved} for moved in (forward.bytes_moved, step.bytes_moved))


def test_a_log_starts_with_what_is_counted():
    found = [*counters_of_the_models(), *counters_of_the_notebook()]
    assert {name: {each[name] for each in found} for name in COUNTED} == {n: {*known} for n, known in COUNTED.items()}


def test_a_log_that_skips_a_step_is_told_where_the_state_is():
    assert "the entries before it leave 26" in said(LOG, ("'before': 26", "'before': 29"))
    assert "shows no dead end" in said(LOG, ("'dropped'", "'kept'"), ("'after': 20", "'after': 29"))


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_number_costs_the_checks_that_read_it_and_never_the_grading(odd):
    record = (
        f"def baseline(question):\n    return {{'counters': dict.fromkeys(['C1', 'C2', 'C3', 'C4', 'C5'], {odd})}}\n"
    )
    found = judged(RECORD, record, hidden=False)
    assert found.status is ExerciseStatus.GRADED
    assert found.points == 0  # True is no 1
    measurement = f"{{'counter': 'kernels', 'unit': 'launches', 'before': {odd}, 'after': {odd}}}"
    log = (
        f"def work_log(question):\n    return {{'entries': [{{'measurement': {measurement}, 'verdict': {odd}}}] * 3}}\n"
    )
    found = judged(LOG, log)
    assert (found.status, found.points) == (ExerciseStatus.GRADED, 0)


def test_a_log_of_very_many_or_very_long_parts_is_told_the_limit():
    many = judged(LOG, "def work_log(question):\n    return {'entries': [{}] * 10_000, 'threats': [{}] * 10_000}\n")
    assert many.points == 0
    assert "10000 entries; expected 3 to 40" in messages(many)["each entry has evidence, hypothesis and change"]
    long = judged(LOG, "def work_log(question):\n    return {'threats': [{'threat': 'a b c d e ' * 10**6}] * 2}\n")
    assert long.points == 0
    assert max(map(len, messages(long).values())) < 400


# control, words of its message
IN_KERNELS = [
    ("no gradient of the bias", ".bias` is off"),
    ("gradients of weight and shift swapped", "The gradient by `"),
    ("a mask for the columns", "in your kernels all rows have the same mask"),
    ("the mask of seed 0", "in your kernels the mask is that of seed 0: read the seed with tl.load"),
    ("an inverted mask", "in your kernels the mask is inverted"),
    ("kept and not divided", "in your kernels what is kept is not divided by 1 - p"),
    ("eps of its kernel left out", "in your kernels eps is left out: it is added to the variance"),
    ("the mean along the wrong axis", "in your kernels the mean goes along the wrong axis"),
    ("no residual in its kernel", "in your kernels the residual is not added"),
    ("PyTorch in a launcher", "`end_forward`, line 7, uses `torch.layer_norm`, which is not there in a launcher"),
    ("sums by atomic operations", "launches 64 (before 68)"),
    ("a mask that its operator saves", "saved_bytes 71,696 (before 78,336)"),
]
BY_HEART = ["an eps by heart", "a p by heart", "names by heart", "modules by heart"]
WRONG_EVERYWHERE = ["unchanged", "dropout is gone", "no bias of the norm", "the dropped value as the residual"]
# a change of the worked operator, words of the message
CHANGED = [
    (("by_h / (1 - p), 0.0)", "by_h, 0.0)"), "The outputs are right: look at what backward returns."),
    (
        ("weight_ptr, shift_ptr, seed_ptr, y_ptr", "shift_ptr, weight_ptr, seed_ptr, y_ptr"),
        "weight and bias of the norm",
    ),
    (("mask=inside, other=0.0) + bias", "mask=inside, other=0.0)"), "the bias of the linear layer is not added"),
    (
        ("at = row * columns + column\n    inside", "at = row * columns + column + 1\n    inside"),
        "outside of every tensor",
    ),
    (("    return y\n", "    return x\n"), "returned a tensor that it was given"),
    (("def end_forward(", "@torch.no_grad()\ndef end_forward("), "has the decorator"),
    (("tl.store(y_ptr + at", "tl.store(x_ptr + at"), "writes to argument 1, which others read"),
    (("end_kernel[grid](", "end_kernel("), "calls the kernel `end_kernel` without a grid"),
]


@pytest.mark.parametrize(("control", "words"), some(IN_KERNELS, 4, name="kernels"))
def test_a_likely_mistake_in_a_kernel_of_its_own_is_named(control, words):
    assert words in messages(judged(STEP, known_answer(STEP, control), only=[ONE_LAYER]))[ONE_LAYER]


@pytest.mark.parametrize(("change", "words"), some(CHANGED, 3, name="changed kernels"))
def test_what_is_wrong_with_an_operator_of_its_own_is_said(change, words):
    own = known_answer(STEP, "an operator of its own")
    assert words in messages(judged(STEP, edited(own, change), only=[ONE_LAYER]))[ONE_LAYER]


@pytest.mark.parametrize("control", some(BY_HEART, 1, name="by heart"))
def test_an_answer_that_fits_the_model_of_the_notebook_only_is_told_so(control):
    record = judged(STEP, known_answer(STEP, control), only=[ONE_LAYER])
    assert record.points == 0
    assert known_by_heart.BY_HEART in messages(record)[ONE_LAYER]


@pytest.mark.parametrize("control", some(WRONG_EVERYWHERE, 1, name="wrong everywhere"))
def test_an_answer_that_fits_no_model_is_not_told_that_it_fits_that_of_the_notebook(control):
    assert "notebook" not in messages(judged(STEP, known_answer(STEP, control), only=[ONE_LAYER]))[ONE_LAYER]


BIAS_GELU = """
    for gelu in [each for each in graph.find_nodes(op="call_function", target=F.gelu) if of(each.args[0], nn.Linear)]:
        linear = gelu.args[0]
        with graph.inserting_before(gelu):
            weight, bias = (graph.get_attr(f"{linear.target}.{name}") for name in ("weight", "bias"))
            product = graph.call_function(F.linear, (linear.args[0], weight))
            gelu.replace_all_uses_with(graph.call_function(torch.ops.course_lib.bias_gelu.default, (product, bias)))
        for node in (gelu, linear):
            graph.erase_node(node)
    gm.recompile()
"""


def test_a_fusion_beyond_the_best_passes_the_gate_and_is_shown_for_the_points_of_the_best():
    further = reference(STEP, ("\n    gm.recompile()\n", BIAS_GELU))
    record = judged(STEP, further, only=[ONE_LAYER])
    assert record.points == 45
    found = {name: LAYER.best[name] - record.counted[name] for name in LAYER.best}
    assert found == {"kernels": 0, "launches": 1, "bytes_moved": 7_936, "saved_bytes": 0}


def test_operators_of_its_own_and_of_the_library_stand_in_one_graph():
    own = known_answer(STEP, "an operator of its own")
    call = "            end = gm.graph.call_function(block_end, (product, bias, residual, scale, shift, *rest))\n"
    both = (
        "            end = gm.graph.call_function(block_end, (product, bias, residual, scale, shift, *rest))\n"
        "            if total.args[0] is drop:\n"
        "                end.target = torch.ops.course_lib.bias_dropout_residual_layer_norm.default\n"
        "                end.args = (*end.args[:6], True, end.args[6])\n"
    )
    assert judged(STEP, edited(own, (call, both)), only=[ONE_LAYER]).points == 45


IN_ANOTHER_EXERCISE = """
import torch
import triton
from course_lib.kernel_programs.kernel_operator import kernel_operator


def forward(x, bias):
    return torch.empty_like(x)


def backward(grad_y, x):
    return grad_y, grad_y


fused = kernel_operator("mine::fused", forward, backward)


def fuse_bias_silu(gm):
    for node in gm.graph.find_nodes(op="placeholder"):
        for user in list(node.users):
            user.op, user.target, user.args, user.kwargs = "call_function", fused, (node, node), {}
    return gm
"""


def test_other_exercises_take_no_operator_of_their_own():
    told = messages(judged("05_bias_silu_pass", IN_ANOTHER_EXERCISE, hidden=False))
    assert any("here a graph calls operators of PyTorch and course_lib only" in message for message in told.values())


@pytest.mark.parametrize(("exercise_id", "check"), [(STEP, ONE_LAYER), ("06_fuse_block_ends", "one layer")])
def test_the_passes_of_the_library_are_not_there(exercise_id, check):
    found = judged(exercise_id, text_of(HOSTILE / exercise_id / "library_pass.py"), only=(check,))
    assert found.points == 0
    assert "'course_lib.fusion" in messages(found)[check]
