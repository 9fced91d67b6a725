"""The exercises of notebook 05: what was likely thought is said, and the library's own passes are out of reach."""

import pytest

from autograder.exercises import find
from tests.autograder.exercises.judged import judged, reference
from tests.drawn import third

CYCLE, CLEAN, SHARE = "05_fix_the_self_cycle", "05_dead_code_and_constants", "05_common_subexpressions"
FOLD, SILU, RMS, BREAK = "05_fold_affine", "05_bias_silu_pass", "05_scale_dropout_rms_norm_pass", "05_break_a_pass"

SWAP = """
def insert_tanh(gm):
    for node in gm.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.tanh
    gm.recompile()
    return gm
"""
ITSELF = """
def insert_tanh(gm):
    for node in gm.graph.nodes:
        if node.target is torch.relu:
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(torch.tanh, (node,))
            node.replace_all_uses_with(new)
    gm.recompile()
    return gm
"""
ONE_LEVEL = """
def clean_up(gm):
    for node in list(gm.graph.nodes):
        if node.op.startswith("call") and not node.users and node.target != "add_":
            gm.graph.erase_node(node)
    gm.recompile()
    return gm
"""
FORGETS_EPS = ("(norm.running_var + norm.eps)", "norm.running_var")
FORGETS_BIAS = (" + (0 if linear.bias is None else linear.bias.detach())", "")
FORGETS_SHIFT = ("old @ shift + ", "0 * old.sum(1) + ")
OBJECT = ("torch.ops.course_lib.bias_silu, (x", "course_lib.kernels.bias_silu, (x")
ONLY_LINEAR = """
def fold_affine(gm):
    for node in list(gm.graph.nodes):
        if node.op == "call_module" and type(gm.get_submodule(node.target)) is nn.LayerNorm:
            norm, reader = gm.get_submodule(node.target), next(iter(node.users))
            linear = gm.get_submodule(reader.target)
            linear.bias.data += linear.weight.data @ norm.bias.data
            linear.weight.data *= norm.weight.data
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
    gm.recompile()
    return gm
"""
TEXT_BOOK = """
def counterexample(question):
    if question["pass"] == "fold_factor":
        return nn.Sequential(nn.Linear(2, 2)), torch.ones(2)
    def program(x):
        h = x * 1
        h.add_(1)
        return h
    return program, torch.ones(2)
"""

# exercise, change of the reference (or another answer), category of the check, words of its message
NAMED = [
    (CYCLE, ITSELF, "one reader", "the new node reads itself"),
    (CYCLE, ("user is not new", "False"), "one reader", "nobody reads the new node"),
    (CYCLE, SWAP, "one reader", "tanh stands in place of relu"),
    (CLEAN, ("n in effects or ", ""), "side effects", "was erased because nobody reads its result"),
    (CLEAN, ONE_LEVEL, "dead code", "now nobody reads the sum"),
    (CLEAN, ("if node in changing or", "if"), "refusals", "called a second time"),
    (SHARE, ("node.target not in RANDOM", "True"), "random numbers", "two draws of random numbers became one"),
    (SHARE, ("seen.clear()", "pass"), "writes", "h is written to between them"),
    (SILU, OBJECT, "ready to run", "Let the node call the operator in `torch.ops.course_lib`"),
    (FOLD, FORGETS_SHIFT, "BatchNorm", "the shift is missing"),
    (FOLD, FORGETS_SHIFT, "LayerNorm", "the shift is missing"),
    (FOLD, FORGETS_EPS, "BatchNorm", "eps was left out"),
    (FOLD, ONLY_LINEAR, "LayerNorm", "each row still has to be normalised"),
    (SILU, (" and others in ({}, {'alpha': 1})", ""), "refusals", "With alpha=2 the sum is x + 2 b"),
    (RMS, ("*options, eps", "options[0], False, eps"), "dropout", "Nothing falls out"),
    (RMS, ("*options, eps", "0.5, options[1], eps"), "dropout", "Hand on the program's own p"),
    (RMS, ("*options, eps))", "*options))"), "eps", "The fused call has eps=1e-05; the program"),
    (BREAK, TEXT_BOOK, "dead code", "which is not called here"),
    (BREAK, TEXT_BOOK, "sharing", "No two calls have the same target"),
    (BREAK, TEXT_BOOK, "folding", "the program has none"),
]


def judged_in(category, exercise_id, answer):
    """The record of an answer, with the checks of one category."""
    names = [check.name for check in find(exercise_id, hidden=True).checks if check.category == category]
    return judged(exercise_id, answer, seed=4, only=names)


TRIED = third(NAMED, name="mistakes in rewriting")  # the others in other runs


@pytest.mark.parametrize(
    ("exercise_id", "change", "category", "words"), TRIED, ids=[f"{n[0][:9]} {n[3][:40]}" for n in TRIED]
)
def test_what_was_likely_thought_is_said(exercise_id, change, category, words):
    if isinstance(change, tuple):
        change = reference(exercise_id, change)
    said = [c.message for c in judged_in(category, exercise_id, change).checks if c.status != "passed"]
    assert any(words in message for message in said), said


def test_a_reason_to_refuse_is_said_of_what_was_folded_and_of_nothing_else():
    check, reason = "what somebody else reads stays", "only the other pair can be folded"
    told = [
        judged(FOLD, reference(FOLD, change), only=[check]).checks[0].message
        for change in (FORGETS_BIAS, ("list(before.users) != [node]", "False"))
    ]
    assert "off by" in told[0]
    assert [reason in message for message in told] == [False, True]


def test_a_fused_look_alike_is_found_beside_a_wrong_number():
    changes = ("given.get('alpha', 1) != 1", "False"), ("*options, eps)", "*options, 1e-3)")
    (check,) = judged(RMS, reference(RMS, *changes), only=["look-alikes stay"]).checks
    assert check.points == 0
    assert "With alpha=2 the sum is another" in check.message
    assert "eps=" not in check.message


@pytest.mark.parametrize("exercise_id", [CYCLE, CLEAN, SHARE, FOLD, SILU, RMS])
@pytest.mark.parametrize("package", ["course_lib.fusion", "course_lib.schedule"])
def test_the_librarys_own_passes_cannot_be_imported(exercise_id, package):
    exercise = find(exercise_id)
    answer = f"import {package} as library\n\ndef {exercise.entry_point}(gm):\n    return library.fuse(gm)\n"
    record = judged_in(exercise.checks[0].category, exercise_id, answer)
    assert record.points == 0
    assert package in record.message
