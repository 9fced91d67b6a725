"""One slip costs one check, and a twelfth or more: the checks that would only see it again grant it."""

import pytest

from autograder.host.checks.known_mistakes import Mistake, mistakes_made
from tests.autograder.exercises.judged import judged, reference
from tests.drawn import some

CURVE = "0.5 * h * (1 + torch.tanh(0.79788456 * (h + 0.044715 * h * h * h)))"
BLOCK_READS, MASKED = (f"sorted(set(re.findall(read, {text})))" for text in ("block", "masked"))
UPDATED = "[next((kinds[k] for k in kinds if k in update)) for update in updates]"
DIRECTION = "'more' if second > first else 'fewer' if second < first"
CALLED = "            calls += absorbed"
SUM = "by_x.sum_to_size(bias.shape)"
RMS = "05_scale_dropout_rms_norm_pass"
FOLD, FOLDS = "05_fold_affine", ["BatchNorm", "no bias", "several places"]
FUSIONS = ["pattern", "modules", "dropout", "counted cost", "spellings", "eps", "several places", "gradients"]
# exercise, categories of the checks that fail, changes of the reference
SLIPS = [
    ("01_scaled_dot_product", ["scores"], ("/ math.sqrt(query.shape[-1])", "/ query.shape[-1]")),
    ("01_scaled_dot_product", ["masked rows"], ("probabilities = probabilities.masked_fill(~mask, 0.0)", "pass")),
    ("01_multi_head_attention", ["values"], ("value, mask)", "value, mask, scale=hidden.shape[-1] ** -0.5)")),
    ("01_multi_head_attention", ["values"], ("context.transpose(1, 2).flatten(2)", "context.reshape(hidden.shape)")),
    (
        "01_bert_layer",
        ["norm last"],
        ("attention_norm = nn.LayerNorm(hidden_size, eps=1e-12)", "attention_norm = nn.LayerNorm(hidden_size)"),
        ("feed_forward_norm = nn.LayerNorm(hidden_size, eps=1e-12)", "feed_forward_norm = nn.LayerNorm(hidden_size)"),
    ),
    (
        "01_bert_layer",
        ["norm last", "residual path"],
        ("self.feed_forward_norm(hidden + self", "self.feed_forward_norm(self"),
    ),
    ("01_bert_layer", ["masks"], ("layer(hidden, mask)", "layer(hidden)")),
    ("01_mlm_batches", ["loss"], ("(labels != -100).sum().clamp(min=1)", "labels.numel()")),
    ("02_find_the_flaw", ["inputs"], ("['draw', 'sync', 'clock', *window", "['sync', 'clock', *window")),
    (
        "02_measure",
        ["quiet machine"],
        ("medians[programs[0]] / medians[programs[1]]", "medians[programs[1]] / medians[programs[0]]"),
    ),
    ("02_annotate", ["failures"], ("finally:", "except KeyError:\n            pass\n        else:")),
    ("02_count_bytes_and_flops", ["bytes"], ("numel() * tensor.element_size()", "numel()")),
    ("02_read_a_trace", ["launch-bound ranges", "two streams"], ("sorted(waiting)", "set(waiting)")),
    ("03_bias_gelu_script", ["gradients"], ("3 * 0.044715", "0.044715")),
    ("03_fused_groups", ["top level"], (" if n.kind() != 'prim::Constant'", "")),
    ("03_make_it_scriptable", ["state"], ("self.past = self.past[-self.depth:]", "pass")),
    ("04_custom_tracer", ["leaf modules"], (" or super().is_leaf_module(module, path)", "")),
    ("04_shape_propagation", ["tensors"], (".removeprefix('torch.')", "")),
    ("04_cost_annotator", ["FLOPs"], ("= 2 * values", "= values")),
    ("04_render_graph", ["rendering"], ("enumerate(module.graph.nodes)", "enumerate(module.graph.nodes, 1)")),
    (FOLD, FOLDS, ("(norm.running_var + norm.eps)", "(norm.running_var + 1e-5)")),
    (FOLD, [*FOLDS, "LayerNorm"], ("old @ shift + ", "0 * old.sum(1) + ")),
    (RMS, FUSIONS, ("*options, eps)", "*options, 1e-3)")),
    (RMS, [c for c in FUSIONS if c != "dropout"], ("*options, eps)", "options[0], True, eps)")),
    (
        "08_functionalise",
        ["through a view", "other sizes", "gradients"],
        ("torch.cat([x[:1] + 1, x[1:]]).tanh()", "torch.stack([x[0] + 1, *x[1:4]]).tanh()"),
    ),
    ("04_render_graph", ["nesting"], ("f'({inside})'", "f'({inside}{\",\" * (len(value) == 1)})'")),
    ("09_read_generated_code", ["loops"], ("return loops", "return loops[:-1]")),
    ("09_read_generated_code", ["loops"], ("return loops", "return loops[1:]")),
    ("09_read_generated_code", ["loops"], ("int(size) for", "size for")),
    ("09_read_generated_code", ["loops"], (r"'std::(\\w+)\\('", r"'std::(\\w+)'")),
    ("09_read_generated_code", ["pointers"], (BLOCK_READS, "sorted(re.findall(read, block))")),
    ("09_read_generated_code", ["pointers"], (BLOCK_READS, "list(dict.fromkeys(re.findall(read, block)))")),
    (
        "09_read_generated_code",
        ["long kernels"],
        (BLOCK_READS, f"sorted({{*{BLOCK_READS}}} - {{*re.findall(read, masked)}})"),
    ),
    ("09_read_generated_code", ["reductions"], ("'product'}", "'prod'}")),
    ("09_read_generated_code", ["reductions"], (UPDATED, f"sorted({UPDATED})")),
    ("09_read_generated_code", ["reductions"], (UPDATED, f"list(dict.fromkeys({UPDATED}))")),
    ("09_read_generated_code", ["masks"], (MASKED, f"({MASKED})[:1]")),
    ("09_read_generated_code", ["masks"], (MASKED, f"{BLOCK_READS} if '[&]' in block else []")),
    ("09_config_experiment", ["counts"], ("[run.kernels for", "[run.cost.launches for")),
    ("09_config_experiment", ["counts"], (", config={plan['option']: setting}", "")),
    ("09_config_experiment", ["C4"], ("number / least for", "least / number for")),
    ("09_config_experiment", ["C4"], ("(*inputs, program(*inputs))", "inputs")),
    ("09_config_experiment", ["verdict"], (DIRECTION, "'more' if second < first else 'fewer' if second > first")),
    ("09_config_experiment", ["no effect"], ("'confirmed' if seen == expected else 'refuted'", "'confirmed'")),
    ("09_predict_kernels", ["one graph"], ("'kernels': kernels + waiting", "'kernels': kernels")),
    ("09_predict_kernels", ["one graph"], ("waiting = turned = False", "waiting = False")),
    ("09_predict_kernels", ["one graph"], ("turned = not turned", "turned = True")),
    ("09_predict_kernels", ["one graph"], ("step in ('bias', 'residual')", "step == 'bias'")),
    ("09_predict_kernels", ["one graph"], ("('product', 'sort', 'break')", "('product', 'sort', 'in_place', 'break')")),
    ("09_predict_kernels", ["one graph"], ("calls += step != 'break'", "calls += step == 'product'")),
    ("09_predict_kernels", ["one graph"], ("= waiting or not absorbed", "= waiting or not absorbed\n" + CALLED)),
    ("09_predict_kernels", ["breaks"], ("kernels += waiting\n", "kernels += waiting or step == 'break'\n")),
    ("09_predict_kernels", ["long programs"], ("calls += step != 'break'", "calls += 1")),
    ("09_predict_kernels", ["long programs"], ("if s != 'unused'", "if s")),
    ("09_predict_kernels", ["long programs"], ("elif step != 'keep':", "else:")),
]
# exercise, a right spelling that another way of grading refused
SPELLINGS = [
    ("02_measure", ("[name for _ in range(request['samples']) for name in random.sample(programs, 2)]", "SHUFFLED")),
    ("03_bias_gelu_script", (SUM, "torch.einsum('...j->j', by_x)")),
    ("03_bias_gelu_script", (SUM, "by_x.view(-1, bias.numel()).sum(0)")),
    ("03_bias_gelu_script", (SUM, "by_x if by_x.dim() == 1 else by_x.flatten(0, -2).sum(0)")),
    ("03_bias_gelu_script", (SUM, "by_x.sum([i for i in range(by_x.dim() - 1)]) if by_x.dim() > 1 else by_x")),
    ("03_bias_gelu_script", (CURVE, "h * torch.sigmoid(2 * 0.7978845608 * (h + 0.044715 * h * h * h))")),
    ("04_render_graph", ("'\\n'.join(lines)", "'\\n'.join(lines) + '\\n'")),
    ("04_shape_propagation", ("list(value.shape)", "value.shape")),
]
SHUFFLED = "random.sample(programs * request['samples'], 2 * request['samples'])"


TRIED = some(SLIPS, 8, name="mistakes in counted_once")  # the others in other runs


@pytest.mark.parametrize("slip", TRIED, ids=[f"{slip[0]}: {slip[2][1]}"[:70] for slip in TRIED])
def test_a_slip_costs_the_checks_that_count_it(slip):
    exercise_id, categories, *changes = slip
    record = judged(exercise_id, reference(exercise_id, *changes))
    lost = [check.category for check in record.checks if check.points < check.max_points]
    assert sorted(set(lost)) == sorted(categories), [c.message for c in record.checks if c.message]
    assert record.points <= 11 / 12 * record.max_points


@pytest.mark.parametrize(("exercise_id", "change"), SPELLINGS, ids=[f"{s[0]}: {s[1][1]}"[:70] for s in SPELLINGS])
def test_a_right_answer_in_another_spelling_gets_full_marks(exercise_id, change):
    old, new = change
    record = judged(exercise_id, reference(exercise_id, (old, SHUFFLED if new == "SHUFFLED" else new)))
    assert record.points == record.max_points, [c.message for c in record.checks if c.message]


def test_a_walk_may_keep_nodes_after_their_graph():
    answer = """
def fused_groups(data):
    stack, found = list(reversed(list(graph_of(data).nodes()))), []
    while stack:
        node = stack.pop()
        inside = list(node.g("Subgraph").nodes()) if "Subgraph" in node.attributeNames() else []
        if node.kind().endswith("Group"):
            operators = [n.kind() for n in inside if n.kind() != "prim::Constant"]
            found.append({"kind": node.kind(), "operators": operators})
            continue
        below = [n for block in node.blocks() for n in block.nodes()] + inside
        stack.extend(reversed(below))
    return found
"""
    record = judged("03_fused_groups", answer)
    assert record.points == record.max_points, [c.message for c in record.checks if c.message]


def test_the_fewest_mistakes_are_found_and_none_where_nothing_explains_the_answer():
    known = [Mistake({"a": 1}, "a", ""), Mistake({"b": 1}, "b", ""), Mistake({"a": 1, "b": 1}, "both", "")]
    assert mistakes_made(lambda options: not options, known) == ()
    assert [m.says for m in mistakes_made(lambda options: options == {"a": 1, "b": 1}, known) or ()] == ["both"]
    assert [m.says for m in mistakes_made(lambda options: len(options) == 2, known[:2]) or ()] == ["a", "b"]
    assert mistakes_made(lambda options: options == {"b": 2}, known) is None
