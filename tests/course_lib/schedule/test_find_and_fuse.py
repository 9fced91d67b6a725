"""Find patterns in traced parts, and let one call compute what was found."""

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import course_lib.kernels
from course_lib.errors import ScheduleError
from course_lib.graph import count_operators
from course_lib.schedule import Schedule, call_module, create_schedule, verify
from tests.course_lib.schedule.models import (
    ROWS,
    TOKENS,
    Block,
    Escaping,
    Scaled,
    Writing,
    after_projection,
    after_projection_by_operator,
    bias_gelu,
    huggingface_bert,
    named_activation,
    our_encoder,
    snapshot,
)
from tests.drawn import some

Tensor = torch.Tensor


def intermediate(layer: int = 0, **changes: object) -> Schedule:
    part = create_schedule(huggingface_bert(**changes))[f"bert.encoder.layer.{layer}.intermediate"]
    part["dense"].decompose()
    return part.trace()


def block(model: nn.Module) -> Schedule:
    schedule = create_schedule(model)
    schedule["dense"].decompose()
    return schedule.trace()


def test_bias_and_gelu_are_found_by_operator_and_by_name() -> None:
    for pattern in (bias_gelu, lambda x, bias: F.gelu(bias + x), named_activation):
        matches = intermediate().find(pattern)
        assert [[node.name for node in match.nodes] for match in matches] == [["add", "intermediate_act_fn"]]


class Renamed(Block):
    def __init__(self) -> None:
        super().__init__()
        self.act_of_mine = self.activation
        del self.activation

    def forward(self, x: Tensor) -> object:
        return self.act_of_mine(self.dense(x))


def test_a_renamed_module_is_found_by_an_expression_and_by_what_it_computes() -> None:
    assert len(block(Renamed()).find(named_activation)) == 1
    assert len(block(Renamed()).find(bias_gelu)) == 1


@pytest.mark.parametrize("model", [Block(nn.ReLU()), Block(nn.GELU(approximate="tanh")), Block(nn.SiLU())], ids=str)
def test_another_activation_is_left_alone(model: nn.Module) -> None:
    assert len(block(model).find(bias_gelu)) == 0


def test_a_pattern_that_fits_nowhere_says_what_comes_nearest() -> None:
    whole = create_schedule(Block()).trace()  # its Linear is not decomposed: the sum is inside
    assert str(whole.find(bias_gelu)) == (
        "0 found, 0 left alone\n"
        "  nearest: activation fits; the pattern wants add there, and finds dense, a call of linear"
    )
    assert "no call in the graph is tanh, the last call of the pattern" in str(whole.find(lambda x: torch.tanh(x)))
    by_name = whole.find(lambda x: F.gelu(call_module("dropout.*", x)))
    assert "the pattern wants call_module('dropout.*') there, and finds dense" in str(by_name)
    twice = block(Block()).find(lambda x: F.gelu(x + x))
    assert "wants the value of x again there" in str(twice)
    assert "nearest:" not in str(whole.find(lambda x: F.gelu(x)))


def test_an_activation_by_formula_in_hugging_face_is_found_as_its_operator() -> None:
    assert len(intermediate(hidden_act="gelu_python").find(bias_gelu)) == 1
    assert len(intermediate(hidden_act="gelu_new").find(bias_gelu)) == 0
    assert len(intermediate(hidden_act="gelu_new").find(lambda x, b: F.gelu(x + b, approximate="tanh"))) == 1
    assert len(intermediate(hidden_act="relu").find(bias_gelu)) == 0
    assert len(intermediate(hidden_act="relu").find(named_activation)) == 1


def hooked_activation() -> Block:
    model = Block()
    model.activation.register_forward_hook(lambda *_: None)
    return model


LOOK_ALIKES: dict[str, tuple[Callable[[], nn.Module], Callable[..., object], str]] = {
    "an intermediate value that escapes": (Escaping, bias_gelu, "is an output"),
    "a factor on the bias": (Scaled, bias_gelu, "alpha"),
    "a sum that is written in place": (Writing, lambda x: F.gelu(x + 1), "in place"),
    "hooks on a matched module": (hooked_activation, bias_gelu, "hooks"),
    "hooks on a named module": (hooked_activation, named_activation, "hooks"),
}


@pytest.mark.parametrize("case", LOOK_ALIKES)
def test_a_look_alike_is_left_alone_with_a_reason(case: str) -> None:
    make, pattern, rule = LOOK_ALIKES[case]
    matches = block(make()).find(pattern)
    assert len(matches) == 0
    assert [refusal.rule for refusal in matches.rejected] == [rule]
    assert rule == "hooks" or matches.rejected[0].remedy


def test_edges_count_and_not_only_the_order_of_nodes() -> None:
    class Crossed(Block):
        def forward(self, x: Tensor) -> object:
            h = self.dense(x)  # a product and a sum
            return F.gelu(x) * h

    assert len(block(Crossed()).find(bias_gelu)) == 0
    assert len(block(Crossed()).find(lambda x: F.gelu(x))) == 1


def test_the_order_of_operands_counts_where_it_matters() -> None:
    class Difference(nn.Module):
        def forward(self, x: Tensor) -> object:
            return torch.relu(x - x.sum(-1, keepdim=True))

    schedule = create_schedule(Difference()).trace()
    assert len(schedule.find(lambda x: torch.relu(x - x.sum(-1, keepdim=True)))) == 1
    assert len(schedule.find(lambda x: torch.relu(x.sum(-1, keepdim=True) - x))) == 0


def test_matches_do_not_overlap() -> None:
    class Chain(nn.Module):
        def forward(self, x: Tensor) -> object:
            return torch.relu(torch.relu(torch.relu(x)))

    matches = create_schedule(Chain()).trace().find(lambda x: torch.relu(torch.relu(x)))
    assert len(matches) == 1
    assert [refusal.rule for refusal in matches.rejected] == ["overlap"]


@pytest.mark.parametrize("compiler", ["eager", "torchscript", course_lib.kernels.bias_gelu], ids=str)
@pytest.mark.parametrize("pattern", [bias_gelu, lambda x, bias: F.gelu(x + bias, approximate="none")])
def test_fused_bias_and_gelu_compute_the_same(compiler: object, pattern: Callable[..., object]) -> None:
    schedule = block(Block())
    schedule.fuse(schedule.find(pattern), compiler=compiler)  # type: ignore[arg-type]  # what fuse takes
    assert count_operators(schedule.mod)["FusedKernel" if callable(compiler) else "FusedGraph"] == 1
    assert not schedule.find(pattern).found
    report = verify(schedule, (ROWS,))
    assert report.passed, report


def projections(schedule: Schedule) -> list[tuple[Schedule, Schedule]]:
    """Return, for both kinds of model, each part to trace with its linear layer."""
    model = schedule.build()
    if hasattr(model, "layers"):
        paths = [f"layers.{n}" for n in range(len(model.layers))]
        return [(schedule[path], schedule[path]["projection.dense"]) for path in paths]
    paths = [f"bert.encoder.layer.{n}.{part}" for n in range(2) for part in ("attention.output", "output")]
    return [(schedule[path], schedule[path]["dense"]) for path in paths]


def decomposed(model: nn.Module) -> Schedule:
    schedule = create_schedule(model)
    for part, linear in projections(schedule):
        linear.decompose()
        if hasattr(part.mod, "feed_forward"):
            part["feed_forward.projection.dense"].decompose()
        part.trace(leaf_modules=("attention",) if hasattr(part.mod, "feed_forward") else ())
    return schedule


def operator_of_the_course(x, bias, residual, shape, weight, layer_norm_bias, p, training, eps):  # type: ignore[no-untyped-def]  # as the pattern
    assert len(shape) == 1
    return course_lib.kernels.bias_dropout_residual_layer_norm(
        x, bias, residual, weight, layer_norm_bias, p, training, eps
    )


@pytest.mark.parametrize("model", [our_encoder, huggingface_bert])
@pytest.mark.parametrize(
    ("pattern", "compiler"),
    [
        (after_projection, "eager"),
        (after_projection, "torchscript"),
        (after_projection_by_operator, "eager"),
        (after_projection_by_operator, operator_of_the_course),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_follows_each_projection_is_fused_in_all_layers(
    model: Callable[[], nn.Module], pattern: Callable[..., object], compiler: str
) -> None:
    schedule = decomposed(model())
    for part, _ in projections(schedule):
        matches = part.find(pattern)
        assert len(matches) == (2 if model is our_encoder else 1), matches
        part.fuse(matches, compiler=compiler, name="after_projection")
    fused = [name for name, _ in schedule.build().named_modules() if name.rpartition(".")[2].startswith("after_proj")]
    assert len(fused) == 4
    assert schedule.build().state_dict().keys() == schedule.original.state_dict().keys()
    report = verify(schedule, (TOKENS,))
    assert report.passed, report
    assert any(finding.where.startswith("train") for finding in report.findings)


def test_matches_of_one_search_are_fused_one_after_the_other() -> None:
    schedule = decomposed(our_encoder())
    part = schedule["layers.0"]
    first, second = part.find(after_projection)
    part.fuse(first, compiler="eager").fuse(second, compiler="eager")
    report = verify(schedule, (TOKENS,))
    assert report.passed, report


def test_a_fused_dropout_follows_the_mode_and_drops_its_share() -> None:
    schedule = decomposed(our_encoder())
    part = schedule["layers.0"]
    part.fuse(part.find(after_projection), compiler="eager")
    built = schedule.build().train()
    assert not torch.equal(built(TOKENS), built(TOKENS))
    built.eval()
    assert torch.equal(built(TOKENS), built(TOKENS))
    torch.testing.assert_close(built(TOKENS), schedule.original.eval()(TOKENS))


def test_checkpoints_go_both_ways_and_training_reaches_the_parameters() -> None:
    model = our_encoder().eval()
    schedule = decomposed(model)
    for part, _ in projections(schedule):
        part.fuse(part.find(after_projection), compiler="torchscript")
    built = schedule.build()
    other = our_encoder()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.1)
    loaded = copy.deepcopy(built)
    loaded.load_state_dict(other.state_dict())
    torch.testing.assert_close(loaded(TOKENS), other.eval()(TOKENS))
    other.load_state_dict(built.state_dict())
    torch.testing.assert_close(built(TOKENS), other(TOKENS))
    torch.optim.SGD(built.parameters(), lr=0.1).zero_grad()
    built(TOKENS).square().sum().backward()
    with torch.no_grad():
        built.layers[0].projection.dense.bias.add_(1.0)
    torch.testing.assert_close(built(TOKENS), model(TOKENS))  # the original has the very same parameters
    assert all(parameter.grad is not None for parameter in built.layers.parameters())


@pytest.mark.slow
def test_inductor_compiles_what_was_found_forward_and_backward() -> None:
    schedule = decomposed(our_encoder())
    part = schedule["layers.1"]
    part.fuse(part.find(after_projection)[0], compiler="inductor")
    modes = some(("eval", "train"), 1, name="modes that Inductor compiles for")
    report = verify(schedule, (TOKENS,), modes=modes, dtypes=(torch.float32,))
    assert report.passed, report


def test_copies_share_what_torchscript_compiled_and_follow_their_own_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = decomposed(our_encoder())
    part = schedule["layers.0"]
    part.fuse(part.find(after_projection), compiler="torchscript")
    monkeypatch.setattr(torch.jit, "script", lambda body: pytest.fail("scripted again"))
    built = schedule.build().eval()
    training = copy.deepcopy(built).train()
    assert torch.equal(built(TOKENS), built(TOKENS))
    assert not torch.equal(training(TOKENS), training(TOKENS))


def test_the_head_and_the_pooled_parts_of_hugging_face_can_be_fused_too() -> None:
    schedule = create_schedule(huggingface_bert())
    head = schedule["cls.predictions.transform"]
    head["dense"].decompose()
    head.trace().fuse(head.find(bias_gelu), compiler="eager")
    assert verify(schedule, (TOKENS,)).passed
    assert schedule.build().cls.predictions.decoder.weight is schedule.build().bert.embeddings.word_embeddings.weight


def test_a_kernel_that_draws_its_own_masks_is_verified_beside_a_checkpoint() -> None:
    schedule = decomposed(our_encoder())
    part = schedule["layers.0"]
    part.fuse(part.find(after_projection_by_operator), compiler=operator_of_the_course)
    schedule["layers.1"].checkpoint()
    report = verify(schedule, (TOKENS,))
    assert report.passed, report
    assert any(finding.where == "with checkpoints" for finding in report.findings)


def test_verification_sees_a_kernel_that_keeps_another_share() -> None:
    def keeps_more(x, bias, residual, shape, weight, layer_norm_bias, p, training, eps):  # type: ignore[no-untyped-def]  # as the pattern
        return operator_of_the_course(x, bias, residual, shape, weight, layer_norm_bias, p / 2, training, eps)

    schedule = decomposed(our_encoder())
    part = schedule["layers.0"]
    part.fuse(part.find(after_projection_by_operator), compiler=keeps_more)
    report = verify(schedule, (TOKENS,))
    assert {finding.where.partition(",")[0] for finding in report.failures} == {"train"}


def test_a_match_from_before_a_change_is_refused() -> None:
    schedule = block(Block())
    matches = schedule.find(bias_gelu)
    schedule.fuse(matches, compiler="eager")
    before = snapshot(schedule)
    with pytest.raises(ScheduleError, match="call find on this sub-module again"):
        schedule.fuse(matches, compiler="eager")
    assert snapshot(schedule) == before


def unscriptable() -> Schedule:
    class Odd(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.exp()

    class Whole(Block):
        def __init__(self) -> None:
            super().__init__(Odd())

    schedule = create_schedule(Whole())
    return schedule.trace(leaf_modules=(Odd,))


class TakesThree(nn.Module):
    def forward(self, x: Tensor, p: float, training: bool) -> Tensor:
        return F.dropout(x, p, training)


def with_inner_state() -> Schedule:
    return create_schedule(nn.Sequential(Block(), nn.ReLU())).trace(flatten=False)


FAILURES: dict[str, tuple[Callable[[], Schedule], Callable[[Schedule], object], str]] = {
    "nothing found": (lambda: block(Block(nn.ReLU())), lambda s: s.fuse(s.find(bias_gelu)), "no match"),
    "no such compiler": (lambda: block(Block()), lambda s: s.fuse(s.find(bias_gelu), compiler="xla"), "'inductor'"),
    "a module as a kernel": (
        lambda: block(Block()),
        lambda s: s.fuse(s.find(bias_gelu), compiler=nn.GELU()),
        "replace(module, match)",
    ),
    "a kernel with other operands": (
        lambda: block(Block()),
        lambda s: s.fuse(s.find(bias_gelu), compiler=lambda x: x),
        "the same parameters",
    ),
    "a kernel that lacks parameters": (
        lambda: create_schedule(nn.Sequential(nn.Linear(2, 2), nn.ReLU())).trace(),
        lambda s: s.fuse(s.find(lambda x: torch.relu(call_module("0", x))), compiler=torch.relu),
        "would not be given",
    ),
    "a name with a dot": (lambda: block(Block()), lambda s: s.fuse(s.find(bias_gelu), name="a.b"), "Python name"),
    "no match at all": (lambda: block(Block()), lambda s: s.fuse(None), "what find returns"),  # type: ignore[arg-type]
    "TorchScript of an unknown module": (
        unscriptable,
        lambda s: s.fuse(s.find(lambda x: call_module("activation", x)), compiler="torchscript"),
        "flatten=True",
    ),
    "a part with parameters": (
        with_inner_state,
        lambda s: s.fuse(s.find(lambda x: torch.relu(call_module("0", x))), compiler="eager"),
        "names in the state dict would change",
    ),
    "one module for two matches": (
        lambda: create_schedule(nn.Sequential(nn.ReLU(), nn.Tanh(), nn.ReLU())).trace(),
        lambda s: s.replace(nn.ReLU(), s.find(lambda x: torch.relu(x))),
        "a module of its own",
    ),
    "a module for a literal": (
        lambda: create_schedule(nn.Sequential(nn.Dropout(0.5))).trace(),
        lambda s: s.replace(TakesThree(), s.find(lambda x, p, training: F.dropout(x, p, training))),
        "when it is built",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_call_says_what_to_do_and_leaves_no_trace(case: str) -> None:
    build, act, words = FAILURES[case]
    schedule = build()
    before = snapshot(schedule)
    with pytest.raises(ScheduleError) as failure:
        act(schedule)
    assert words in str(failure.value)
    assert snapshot(schedule) == before


def test_a_match_of_another_part_is_refused() -> None:
    first, second = intermediate(0), intermediate(1)
    matches = first.find(bias_gelu)
    with pytest.raises(ScheduleError, match="never was"):
        second.fuse(matches, compiler="eager")
