"""`torch.compile(model, backend=backend)`, for inference and training, with sizes that change."""

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn

from course_lib.backends import Backend, CompileCache
from course_lib.backends.toy import ToyTarget
from course_lib.errors import BackendError
from course_lib.machine import Machine
from course_lib.models import workload
from course_lib.models.recurrent import LSTMNetwork
from tests.drawn import some


@pytest.fixture(autouse=True)
def _fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def first(value: object) -> torch.Tensor:
    return value[0] if isinstance(value, tuple) else value


def with_dropout(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.2
    return model.train()


def test_training_gives_the_gradients_statistics_and_masks_of_eager_pytorch():
    for name in some(["bert_layer", "residual_network", "lstm"], 2, name="models that are trained"):
        torch._dynamo.reset()
        _train_beside_eager(name)


def _train_beside_eager(name: str) -> None:
    model, inputs = (LSTMNetwork(8, 8), (torch.randn(3, 2, 8),)) if name == "lstm" else workload(name).build()
    model, theirs = with_dropout(model), with_dropout(copy.deepcopy(model))
    backend = Backend(ToyTarget(Machine(8)))
    compiled = torch.compile(model, backend=backend)
    for step in range(2):
        for program in (compiled, theirs):
            torch.manual_seed(step)
            first(program(*inputs)).square().mean().backward()
    for (path, ours), eager in zip(model.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, eager.grad, rtol=1e-4, atol=1e-6, msg=path)
    for (path, ours), eager in zip(model.named_buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(ours, eager, msg=path)
    assert backend.names == ["forward", "backward"]
    assert all(graph.after.launches < graph.before.launches for graph in backend.graphs)
    assert all(any(part.kept for part in graph.parts) for graph in backend.graphs)


def test_sizes_that_change_are_compiled_once_each():
    model, _ = workload("bert_layer").build()
    backend = Backend(ToyTarget())
    compiled = torch.compile(model, backend=backend)
    with torch.no_grad():
        for length in (16, 12, 7, 9, 7, 12):
            given = torch.randn(2, length, 32)
            torch.testing.assert_close(compiled(given), model(given))
    assert backend.names == ["inference", "inference"]  # with sizes, and with symbols for all that came later
    assert backend.graphs[1].before is None
    assert backend.cache.misses == 4
    assert backend.target.machine.counts.launches == 6 * backend.graphs[0].after.launches


def test_the_bert_of_hugging_face_runs_in_one_part_beside_its_embeddings():
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64, "num_hidden_layers": 1}
    model = BertModel(BertConfig(vocab_size=100, attn_implementation="eager", **sizes)).eval()
    tokens, backend = torch.randint(100, (2, 16)), Backend(ToyTarget())
    with torch.no_grad():
        ours, eager = torch.compile(model, backend=backend)(tokens), model(tokens)
    torch.testing.assert_close(ours.last_hidden_state, eager.last_hidden_state)
    (graph,) = backend.graphs
    assert [part.kept for part in graph.parts] == [True]
    assert {refusal.operator for refusal in graph.refusals} == {"aten.embedding", "aten.gather"}
    assert graph.after.launches < 0.6 * graph.before.launches


def test_autocast_is_followed_and_what_mixes_types_stays_with_eager_pytorch():
    model, (x,) = workload("bert_layer").build()
    backend = Backend(ToyTarget())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours, eager = torch.compile(model, backend=backend)(x), model(x)
    torch.testing.assert_close(ours, eager, rtol=0, atol=0.03)
    ours.sum().backward()
    assert {refusal.objection.rule for refusal in backend.graphs[0].refusals} == {"mixed dtypes"}
    assert all(graph.after.launches < graph.before.launches for graph in backend.graphs)


def test_keyword_arguments_tuples_and_graph_breaks_work():
    def program(x, *, scale, pair=None):
        x = torch.relu(x * scale) + 1
        torch._dynamo.graph_break()
        return {"sum": x.sum(), "rest": (x, pair)}

    backend = Backend(ToyTarget())
    compiled = torch.compile(program, backend=backend)
    x = torch.randn(4, 5)
    ours, eager = compiled(x, scale=torch.tensor(2.0), pair=3), program(x, scale=torch.tensor(2.0), pair=3)
    torch.testing.assert_close(ours, eager)
    assert len(backend.graphs) == 2


def test_backends_may_share_a_cache():
    cache, machine = CompileCache(), Machine()
    target = ToyTarget(machine)
    x = torch.randn(8, 8)
    for _ in range(2):
        torch._dynamo.reset()
        backend = Backend(target, cache=cache)
        torch.compile(lambda x: torch.relu(x + 1) * x, backend=backend)(x)
    assert cache.misses == 1
    assert backend.graphs[0].parts[0].found_in_cache


def test_a_report_shows_parts_refusals_launches_bytes_and_the_cache():
    backend = Backend(ToyTarget(Machine(8)))
    assert (
        str(backend.report()) == "toy machine, 8 registers: nothing was captured yet; call the compiled program first."
    )
    model, inputs = workload("residual_network").build()
    with torch.no_grad():
        torch.compile(model, backend=backend)(*inputs)
    report = backend.report()
    assert repr(backend) == "Backend for toy machine, 8 registers: 1 graphs so far; see report() for more"
    text = str(report)
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    assert "cache: 6 hits, 4 misses" in text
    assert "21 → 13" in text
    assert "the target has no aten.convolution" in lines["inference"]
    assert "from the cache" in text
    html = report._repr_html_()
    assert html.count("<table>") == 3
    assert "aten.convolution" in html
    assert list(report.summary().columns) == ["graph", "parts kept", "launches", "bytes moved"]


def test_a_target_that_is_none_is_refused_before_anything_is_compiled():
    with pytest.raises(BackendError, match="got 'inductor'"):
        Backend("inductor")


def test_importing_registers_nothing_with_dynamo():
    code = "import course_lib.backends.toy, course_lib.machine, sys; assert 'torch._dynamo' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
