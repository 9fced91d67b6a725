"""A pass that changes what a program computes earns at most 60 %; a missed fusion costs its own share."""

import pytest

from autograder.classroom.nbgrader.outside_kernel import mark_of
from autograder.exercises import all_exercises, find
from autograder.host.exercise import Kind
from autograder.host.records import SandboxRecord, SubmissionRecord
from autograder.host.report import exercise_html, exercise_text
from autograder.host.value_cap import REFUSALS, SENTENCE, VALUES_STAY, most_points
from tests.autograder.exercises.judged import judged, messages, reference
from tests.drawn import third

SILU, RMS, FOLD = "05_bias_silu_pass", "05_scale_dropout_rms_norm_pass", "05_fold_affine"
CYCLE = "05_fix_the_self_cycle"
SHARE, CLEAN = "05_common_subexpressions", "05_dead_code_and_constants"
ENDS, ATTENTION = "06_fuse_block_ends", "06_replace_attention"
PASSES = [CLEAN, SHARE, FOLD, SILU, RMS]
IGNORES_ALPHA = (" and others in ({}, {'alpha': 1})", "")

# exercise, a change of the reference with which a program computes something else, words of a message about it
CHANGING = [
    (SILU, IGNORES_ALPHA, "With alpha=2 the sum is x + 2 b"),
    (SILU, ("inserting_before(total)", "inserting_before(node)"), "reads h too late"),
    (RMS, ("*options, eps", "options[0], True, eps"), "The fused call has training=True"),
    (RMS, ("*options, eps", "1 - options[0], options[1], eps"), "The fused call has p="),
    (RMS, ("given.get('training', True)", "given.get('training', False)"), "as it is called by default has True"),
    (RMS, ("or any(map(written, between))", ""), "A node between product and norm writes"),
    (FOLD, ("(not norm.training) and ", ""), "BatchNorm in training normalises with its batch"),
    (SHARE, ("return (type(value), value)", "return value"), "1, 1.0 and True are equal for Python"),
    (SHARE, ("node.target not in RANDOM", "True"), "two draws of random numbers became one"),
    (ENDS, ("p, training, eps)\n", "p, False, eps)\n"), "probability, mode and eps are to be carried over"),
    (ATTENTION, ("self.p if self.training else 0.0", "self.p"), "probability, mode and eps are to be carried over"),
    (ATTENTION, ("attn_mask=mask, ", ""), "does not read the input"),
]
TRIED = third(CHANGING, name="mistakes in changed_programs")  # the others in other runs


@pytest.mark.parametrize(("exercise_id", "change", "words"), TRIED, ids=[f"{c[0][:9]} {c[2][:40]}" for c in TRIED])
def test_a_pass_that_changes_a_program_earns_at_most_60_percent_and_hears_why(exercise_id, change, words):
    record = judged(exercise_id, reference(exercise_id, change))
    assert record.points <= most_points(record.max_points)
    assert record.cap.startswith(SENTENCE) == (record.points > 0)  # a limit of nothing needs no sentence
    assert any(words in message for message in messages(record).values()), messages(record)


def test_the_limit_shows_in_record_reports_and_marks():
    record = judged(SILU, reference(SILU, IGNORES_ALPHA))
    assert sum(check.points for check in record.checks) > 7.2
    assert record.points == 7.2
    assert "the check `another sum stays, and one that is written to`, and 1 more" in record.cap
    assert "look-alikes stay" not in record.cap  # students see the category alone
    assert SENTENCE in " ".join(exercise_text(record).split())
    assert SENTENCE in exercise_html(record)
    assert mark_of(record, 12.0) == 7.2
    kept = SubmissionRecord("05_fx_rewrite", "ada", "0" * 64, SandboxRecord(1), (record,))
    assert SubmissionRecord.from_json(kept.to_json()).exercises[0].cap == record.cap


def test_a_tanh_behind_another_call_costs_40_percent_and_one_too_few_its_share():
    by_name = ("node.target is torch.relu", "node.name.startswith('relu')")
    record = judged(CYCLE, reference(CYCLE, by_name))
    assert (record.points, record.max_points) == (3.6, 6)
    assert "`F.relu6` is another function" in messages(record)["other calls stay"]
    assert "the check `other calls stay`, and 1 more" in record.cap
    first = ("list(graph.nodes)", "[node for node in graph.nodes if node.target is torch.relu][:1]")
    assert judged(CYCLE, reference(CYCLE, first)).cap == ""


def test_a_missed_fusion_costs_its_share_only():
    record = judged(SILU, reference(SILU, ("if is_call(node, operator.mul, torch.mul, 'mul'):", "if False:")))
    lost = [check for check in record.checks if check.points < check.max_points]
    assert [check.name for check in lost] == ["SiLU by hand"]
    assert record.cap == ""
    assert record.points == pytest.approx(12 - lost[0].max_points)


def test_half_of_the_ends_earn_half():
    one_end = ("type(part).__name__ == 'Projection'", "type(part).__name__ == 'Projection' and '.' in name")
    record = judged(ENDS, reference(ENDS, one_end))
    assert record.points == pytest.approx(record.max_points / 2, abs=1)
    assert "Only some blocks end in the fused call" in messages(record)["one layer"]


def test_a_pass_may_refuse_wherever_the_graph_writes():
    change = ("between = nodes[nodes.index(product):nodes.index(node)]", "between = nodes")
    assert judged(RMS, reference(RMS, change), only=["what is needed elsewhere stays"]).points == 2


def test_the_function_of_the_kernel_may_be_the_target_of_a_graph_but_its_module_does_not_run():
    change = ("torch.ops.course_lib.bias_silu", "course_lib.kernels.bias_silu")
    record = judged(SILU, reference(SILU, change))  # torch.fx finds no name for it in the code that it writes

    assert record.points == 11.5
    assert any("It raises AttributeError" in check.message for check in record.checks)


def test_three_projections_may_be_one_product():
    parts = (
        "(part(hidden).unflatten(-1, self.sizes).transpose(1, 2) for part in (self.query, self.key, self.value))",
        "(t.unflatten(-1, self.sizes).transpose(1, 2) for t in F.linear(hidden, "
        "torch.cat([self.query.weight, self.key.weight, self.value.weight]), "
        "torch.cat([self.query.bias, self.key.bias, self.value.bias])).chunk(3, -1))",
    )
    assert judged(ATTENTION, reference(ATTENTION, parts), only=["one layer, one call"]).points == 1.5


@pytest.mark.parametrize("exercise_id", PASSES)
def test_refusals_weigh_35_to_45_percent_of_a_pass(exercise_id):
    exercise = find(exercise_id, hidden=True)
    weight = sum(check.points for check in exercise.checks if check.category in REFUSALS)
    assert 0.35 <= weight / exercise.points <= 0.45


def test_every_pass_and_schedule_is_held_to_the_values_of_its_programs():
    # a pass that inserts nodes is asked for another program: only look-alikes have to stay as they were; a module
    # that does not run its new graph computes what it did
    for exercise_id in set(all_exercises()) - {CYCLE}:
        exercise = find(exercise_id, hidden=True)
        if exercise.kind in (Kind.GRAPH, Kind.SCHEDULE):
            assert {check.category for check in exercise.checks} <= {*VALUES_STAY, "ready to run"}, exercise_id
