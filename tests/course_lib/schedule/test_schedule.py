"""Paths, decomposition, tracing by need, replacement, checkpoints and the history."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.errors import ScheduleError
from course_lib.models.transformer import SelfAttention
from course_lib.schedule import Schedule, call_module, create_schedule, verify
from tests.course_lib.schedule.models import (
    ROWS,
    TOKENS,
    Block,
    bias_gelu,
    huggingface_bert,
    our_encoder,
    snapshot,
)

Tensor = torch.Tensor


def test_a_path_leads_to_a_part_and_the_schedule_leaves_the_model_alone() -> None:
    model = our_encoder()
    before = [(name, id(module)) for name, module in model.named_modules()]
    schedule = create_schedule(model)
    layer = schedule["layers.0"]
    assert layer["feed_forward"]["dense"].path == "layers.0.feed_forward.dense"
    assert layer["feed_forward.dense"].mod.weight is model.layers[0].feed_forward.dense.weight
    layer["feed_forward.dense"].decompose()
    layer["feed_forward"].trace()
    assert [(name, id(module)) for name, module in model.named_modules()] == before
    assert schedule.build().layers[0].feed_forward is layer["feed_forward"].mod


def test_every_path_of_named_modules_leads_somewhere_the_empty_one_to_the_part_itself() -> None:
    layer = create_schedule(our_encoder())["layers.0"]
    assert all(layer[path].mod is module for path, module in layer.mod.named_modules())
    assert layer[""].path == "layers.0"
    with pytest.raises(ScheduleError, match=r"There is no part 'layers\.0\.\.dense'"):
        layer[".dense"]


def test_a_decomposed_linear_layer_has_the_same_parameters_and_shows_its_bias() -> None:
    model = Block()
    schedule = create_schedule(model)
    schedule["dense"].decompose()
    assert schedule["dense"].mod.weight is model.dense.weight
    assert schedule["dense"].mod.bias is model.dense.bias
    schedule.trace()
    assert [node.op for node in schedule.mod.graph.nodes].count("get_attr") == 2
    assert list(schedule.build().state_dict()) == list(model.state_dict())
    report = verify(schedule, (ROWS,))
    assert report.passed, report


def test_tracing_the_feed_forward_part_changes_nothing_else() -> None:
    model = huggingface_bert()
    schedule = create_schedule(model)
    schedule["bert.encoder.layer.0.intermediate"].trace()
    traced = [name for name, module in schedule.build().named_modules() if isinstance(module, fx.GraphModule)]
    assert traced == ["bert.encoder.layer.0.intermediate"]
    assert [name for name, _ in schedule.build().named_modules()] == [name for name, _ in model.named_modules()]
    assert schedule.build().state_dict().keys() == model.state_dict().keys()
    assert verify(schedule, (TOKENS,)).passed


def test_tracing_keeps_whole_what_it_is_told_to() -> None:
    def calls(**options: Any) -> list[str]:
        schedule = create_schedule(our_encoder())
        graph = schedule["layers.0.feed_forward"].trace(**options).mod.graph
        return [str(node.target) for node in graph.find_nodes(op="call_module")]

    assert calls() == ["dense", "projection.dense", "projection.dropout"]
    for options in ({"flatten": False}, {"leaf_modules": ("projection",)}, {"leaf_modules": ("Projection",)}):
        assert calls(**options) == ["dense", "projection"]


def test_a_whole_layer_is_traced_around_its_attention() -> None:
    schedule = create_schedule(our_encoder())
    schedule["layers.1"].trace(leaf_modules=("attention",))
    assert "taking mask as given" in str(schedule.history)
    mask = torch.zeros(2, 1, 7, 7).index_fill(-1, torch.tensor([6]), float("-inf"))
    for inputs in ((TOKENS,), (TOKENS, mask)):
        report = verify(schedule, inputs)
        assert report.passed, report


class FastAttention(nn.Module):
    """Attention by PyTorch's operator, with the names of `SelfAttention`."""

    def __init__(self, old: SelfAttention) -> None:
        super().__init__()
        self.query, self.key, self.value = (copy.deepcopy(part) for part in (old.query, old.key, old.value))
        self.num_heads, self.head_size = old.num_heads, old.head_size

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        parts = (part(hidden).unflatten(-1, (self.num_heads, self.head_size)) for part in self._parts())
        context = F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in parts), attn_mask=mask)
        return context.transpose(1, 2).flatten(2)

    def _parts(self) -> tuple[nn.Module, ...]:
        return self.query, self.key, self.value


def test_attention_is_replaced_by_pytorchs_operator_with_copied_weights() -> None:
    model = our_encoder().eval()
    schedule = create_schedule(model)
    for layer in ("layers.0", "layers.1"):
        schedule[layer]["attention"].replace(FastAttention(schedule[layer]["attention"].mod))
    assert not schedule["layers.0.attention"].mod.training
    assert "names in the state dict are as before" in str(schedule.history)
    mask = torch.zeros(2, 1, 7, 7).index_fill(-1, torch.tensor([6]), float("-inf"))
    for inputs in ((TOKENS,), (TOKENS, mask)):
        report = verify(schedule, inputs, modes=("eval",))
        assert report.passed, report


def test_verification_sees_weights_that_were_not_copied() -> None:
    schedule = create_schedule(our_encoder())
    schedule["layers.0.attention"].replace(FastAttention(SelfAttention(huggingface_config())))
    assert not verify(schedule, (TOKENS,), modes=("eval",)).passed


def huggingface_config() -> Any:
    from course_lib.models import TransformerConfig

    return TransformerConfig(16, 2, 32, 2, 50, 16)


class ItsOwnAttention(nn.Module):
    """The attention of Hugging Face's layer, which calls it with more arguments than it needs."""

    def __init__(self, old: nn.Module) -> None:
        super().__init__()
        self.query, self.key, self.value = old.query, old.key, old.value
        self.heads, self.size = old.num_attention_heads, old.attention_head_size

    def forward(self, hidden: Tensor, *, attention_mask: Tensor | None = None, **_: Any) -> tuple[Tensor, None]:
        parts = (part(hidden).unflatten(-1, (self.heads, self.size)) for part in (self.query, self.key, self.value))
        context = F.scaled_dot_product_attention(*(p.transpose(1, 2) for p in parts), attn_mask=attention_mask)
        return context.transpose(1, 2).flatten(2), None


def test_the_attention_of_hugging_face_is_replaced_with_the_same_weights() -> None:
    schedule = create_schedule(huggingface_bert(attn_implementation="eager"))
    attention = schedule["bert.encoder.layer.0.attention.self"]
    attention.replace(ItsOwnAttention(attention.mod))
    mask = torch.ones_like(TOKENS)
    mask[0, 4:] = 0
    report = verify(schedule, (TOKENS, mask), modes=("eval",))
    assert report.passed, report


def test_a_function_replaces_a_match_or_a_part_without_parameters() -> None:
    schedule = create_schedule(Block(nn.ReLU()))
    schedule["activation"].replace(torch.relu)
    assert verify(schedule, (ROWS,)).passed
    schedule["activation"].replace(nn.ReLU())
    schedule["dense"].decompose()
    schedule.trace()
    matches = schedule.find(lambda x, bias: torch.relu(x + bias))
    schedule.replace(lambda x, bias: torch.clamp(bias + x, min=0), matches)
    assert "replaced_0" in schedule.mod.code
    assert verify(schedule, (ROWS,)).passed


def test_a_module_replaces_a_match() -> None:
    schedule = create_schedule(Block())
    schedule.eval = None  # type: ignore[attr-defined]  # a schedule is no module, and does not look like one
    schedule.trace()
    schedule.replace(nn.GELU(approximate="none"), schedule.find(lambda x: F.gelu(x)), name="activation")
    assert verify(schedule, (ROWS,)).passed


def test_a_checkpointed_part_computes_the_same_twice_under_the_same_names() -> None:
    calls = []

    class Counting(Block):
        def forward(self, x: Tensor) -> object:
            calls.append(1)
            return F.dropout(super().forward(x), 0.5, self.training)

    schedule = create_schedule(nn.Sequential(Counting(), nn.Linear(8, 8)))
    schedule["0"].checkpoint()
    assert schedule["0.dense"].path == "0.dense"
    built = schedule.build()
    assert built.state_dict().keys() == schedule.original.state_dict().keys()
    built(ROWS).sum().backward()
    assert len(calls) == 2
    report = verify(schedule, (ROWS,))
    assert report.passed, report
    calls.clear()
    built.eval()
    assert not built[0].inner.training
    with torch.no_grad():
        built(ROWS)
    assert len(calls) == 1


def test_a_checkpointed_part_can_be_scheduled_further_and_copied() -> None:
    schedule = create_schedule(our_encoder())
    schedule["layers.0"].checkpoint()
    schedule["layers.0.feed_forward.dense"].decompose()
    schedule["layers.0.feed_forward"].trace().fuse(schedule["layers.0.feed_forward"].find(bias_gelu), compiler="eager")
    report = verify(schedule, (TOKENS,))
    assert report.passed, report
    copied = pickle.loads(pickle.dumps(schedule.build())).eval()
    torch.testing.assert_close(copied(TOKENS), schedule.original.eval()(TOKENS))


def test_a_parent_reads_attributes_of_a_checkpointed_part() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)  # reads `self_attn.batch_first`
    schedule = create_schedule(nn.TransformerEncoder(layer, 2))
    schedule["layers.0.self_attn"].checkpoint()
    built = schedule.build()
    assert built.layers[0].self_attn.num_heads == 2
    inputs = torch.randn(2, 3, 8)
    torch.testing.assert_close(built.eval()(inputs), schedule.original.eval()(inputs))
    assert not hasattr(built.layers[0].self_attn, "no_such_name")


def test_the_history_tells_what_was_done_where() -> None:
    schedule = create_schedule(Block())
    assert str(schedule.history) == "nothing was scheduled yet"
    schedule["dense"].decompose()
    schedule.trace()
    schedule.fuse(schedule.find(bias_gelu), compiler="eager", name="bias_gelu")
    assert [step.action for step in schedule.history] == ["decompose", "trace", "fuse"]
    assert schedule.history[0].path == "dense"
    assert "3. fuse the model: add, activation → bias_gelu_0, by eager" in str(schedule.history)


def test_training_modes_of_single_parts_survive_tracing() -> None:
    model = our_encoder()
    model.layers[0].feed_forward.projection.dropout.eval()
    schedule = create_schedule(model)
    schedule["layers.0.feed_forward"].trace()
    assert schedule["layers.0.feed_forward"].mod.training
    assert not schedule["layers.0.feed_forward.projection.dropout"].mod.training


class Branching(Block):
    def forward(self, x: Tensor) -> object:
        return self.dense(x) if x.sum() > 0 else x


def hooked() -> Block:
    block = Block()
    block.register_forward_hook(lambda *_: None)
    block.dense.register_forward_hook(lambda *_: None)
    return block


def test_a_layer_that_is_one_node_of_a_graph_is_decomposed_and_traced_again():
    block = Block()
    x = torch.randn(3, block.dense.in_features)
    schedule = traced(block)
    schedule["dense"].decompose()
    assert len(schedule.trace().find(bias_gelu)) == 1
    torch.testing.assert_close(schedule.build()(x), block(x))


def traced(model: nn.Module) -> Schedule:
    return create_schedule(model).trace()


FAILURES: dict[str, tuple[Callable[[], Schedule], Callable[[Schedule], object], str]] = {
    "no such path": (lambda: create_schedule(Block()), lambda s: s["dense.x"], "has no parts"),
    "no such part": (lambda: create_schedule(Block()), lambda s: s["dens"], "dense, activation"),
    "decompose an activation": (lambda: create_schedule(Block()), lambda s: s["activation"].decompose(), "GELU"),
    "decompose without bias": (
        lambda: create_schedule(nn.Sequential(nn.Linear(2, 2, bias=False))),
        lambda s: s["0"].decompose(),
        "no bias",
    ),
    "decompose below a node": (
        lambda: create_schedule(nn.Sequential(Block())).trace(flatten=False),
        lambda s: s["0.dense"].decompose(),
        "traced already",
    ),
    "decompose with hooks": (lambda: create_schedule(hooked()), lambda s: s["dense"].decompose(), "hooks"),
    "trace a branch": (lambda: create_schedule(Branching()), lambda s: s.trace(), "as it was"),
    "trace over hooks": (lambda: create_schedule(hooked()), lambda s: s.trace(), "lose the hooks"),
    "trace with an unknown leaf": (
        lambda: create_schedule(Block()),
        lambda s: s.trace(leaf_modules=("Attention",)),
        "no such path or class",
    ),
    "trace with one string": (
        lambda: create_schedule(Block()),
        lambda s: s.trace(leaf_modules="dense"),
        "expects several",
    ),
    "find before tracing": (lambda: create_schedule(Block()), lambda s: s.find(bias_gelu), "call trace()"),
    "find no function": (lambda: traced(Block()), lambda s: s.find("activation"), "expects a function"),
    "find a pattern with a branch": (
        lambda: traced(Block()),
        lambda s: s.find(lambda x: torch.relu(x) if x > 0 else x),
        "cannot be traced",
    ),
    "find a pattern of nothing": (lambda: traced(Block()), lambda s: s.find(lambda x: x), "one operator"),
    "find a bad expression": (
        lambda: traced(Block()),
        lambda s: s.find(lambda x: call_module("(", x)),
        "no regular expression",
    ),
    "replace by a number": (
        lambda: create_schedule(Block()),
        lambda s: s["dense"].replace(3),
        "a module or a function",
    ),
    "replace a layer by a function": (
        lambda: create_schedule(Block()),
        lambda s: s["dense"].replace(torch.relu),
        "has parameters",
    ),
    "replace over hooks": (lambda: create_schedule(hooked()), lambda s: s["dense"].replace(nn.ReLU()), "hooks"),
    "checkpoint twice": (
        lambda: create_schedule(Block())["dense"].checkpoint(),
        lambda s: s.checkpoint(),
        "checkpointed already",
    ),
    "checkpoint a list": (
        lambda: create_schedule(our_encoder()),
        lambda s: s["layers"].checkpoint(),
        "never called",
    ),
    "call_module outside": (lambda: create_schedule(Block()), lambda s: call_module("x", ROWS), "outside of a pattern"),
    "verify a model": (lambda: create_schedule(Block()), lambda s: verify(s.build(), (ROWS,)), "expects a Schedule"),
    "verify with bad inputs": (
        lambda: create_schedule(Block()),
        lambda s: verify(s, (torch.ones(3),)),
        "the original Block fails",
    ),
    "verify in no mode": (lambda: create_schedule(Block()), lambda s: verify(s, (ROWS,), modes=("x",)), "the modes"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_call_says_what_to_do_and_leaves_no_trace(case: str) -> None:
    build, act, words = FAILURES[case]
    schedule = build()
    before = snapshot(schedule)
    with pytest.raises(ScheduleError) as failure:
        act(schedule)
    assert words in str(failure.value)
    if case != "verify with bad inputs":
        assert snapshot(schedule) == before


def test_only_a_module_can_be_scheduled() -> None:
    with pytest.raises(ScheduleError, match=r"expects a torch\.nn\.Module"):
        create_schedule(torch.relu)  # type: ignore[arg-type]
