"""A graph is lowered where that pays, computes what it did, and says what stays with eager PyTorch and why."""

import pytest
import torch
from torch import fx, nn

from course_lib.backends import Backend, CompileCache, Executable, Prices, Target, lower, report
from course_lib.backends.toy import ToyTarget
from course_lib.capture import capture
from course_lib.errors import BackendError
from course_lib.fusion import Objection
from course_lib.machine import Machine
from course_lib.models import TransformerConfig, TransformerLayer, workload
from course_lib.models.workloads import ResidualNetwork
from course_lib.verify.error_rule import deviation

# workload -> launches in eager PyTorch and with the target
LAUNCHES = {"bert_layer": (19, 11), "residual_network": (21, 13), "rnn": (66, 34)}


def flat(value: object) -> list[torch.Tensor]:
    return torch.utils._pytree.tree_leaves(value)


def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.relu(x + y) * y


def chained(*sizes: int) -> tuple[fx.GraphModule, tuple[torch.Tensor, torch.Tensor]]:
    return fx.symbolic_trace(chain), (torch.randn(sizes), torch.randn(sizes))


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_model_computes_what_it_did_in_fewer_launches(name):
    model, inputs = workload(name).build()
    double = workload(name).build(dtype=torch.float64)[0]
    double.load_state_dict(model.state_dict())
    target = ToyTarget(Machine(8))
    lowered = lower(torch.export.export(model, inputs).module(), inputs, target)
    with torch.no_grad():
        eager, truth = flat(model(*inputs)), flat(double(*(each.double() for each in inputs)))
    for actual, reference, exact in zip(flat(lowered(*inputs)), eager, truth, strict=True):
        found = deviation(actual, exact, reference)
        assert found.within_bound, found
        assert actual.stride() == reference.stride()
    assert (lowered.before.launches, lowered.after.launches) == LAUNCHES[name]
    assert lowered.after.bytes_moved < lowered.before.bytes_moved
    inside = sum(part.compiled.launches for part in lowered.parts if part.kept)
    assert target.machine.counts.launches == inside


def test_a_convolution_stays_with_eager_pytorch_for_a_reason():
    model, inputs = workload("residual_network").build()
    lowered = lower(torch.export.export(model, inputs).module(), inputs, ToyTarget())
    assert {refusal.objection.reason for refusal in lowered.refusals} == {"the target has no aten.convolution"}
    assert len(lowered.refusals) == 6
    assert len([node for node in lowered.graph_module.graph.nodes if "convolution" in str(node.target)]) == 6


@pytest.mark.parametrize("mode", ["fx", "make_fx"])
def test_graphs_of_other_captures_are_lowered_too(mode):
    model, (x,) = workload("bert_layer").build()
    arguments = {"concrete_args": {"mask": None}} if mode == "fx" else {}
    lowered = lower(capture(model, (x,), mode=mode, **arguments).graph_module, (x,), ToyTarget())
    torch.testing.assert_close(lowered(x), model(x))
    assert lowered.after.launches <= 11


def test_the_graph_that_is_given_stays_as_it_is():
    gm, inputs = chained(8, 8)
    code, nodes = gm.code, [str(node.meta) for node in gm.graph.nodes]
    lower(gm, inputs, ToyTarget())
    assert gm.code == code
    assert [str(node.meta) for node in gm.graph.nodes] == nodes


def test_parameters_are_the_models_own():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    x = torch.randn(4, 8)
    lowered = lower(capture(model, (x,)).graph_module, (x,), ToyTarget())
    with torch.no_grad():
        model[0].weight.zero_()
    torch.testing.assert_close(lowered(x), model(x))


def test_statistics_of_a_model_in_training_change_as_in_eager_pytorch():
    ours, theirs = ResidualNetwork(), ResidualNetwork()
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3, 16, 16)
    lowered = lower(capture(ours, (x,), mode="fx").graph_module, (x,), ToyTarget(), prices=Prices(handover_us=0))
    with torch.no_grad():
        torch.testing.assert_close(lowered(x), theirs(x))
    for (name, mine), other in zip(ours.named_buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(mine, other, msg=name)


def test_a_change_in_place_of_an_input_reaches_the_caller():
    def program(x, y):
        x.mul_(2)
        return torch.relu(x + y) * y

    x, y = torch.randn(8, 8), torch.randn(8, 8)
    expected = x * 2
    lowered = lower(fx.symbolic_trace(program), (x, y), ToyTarget())
    before = x.clone()
    result = lowered(x, y)
    assert torch.equal(x, expected)
    torch.testing.assert_close(result, program(before, y))


def test_a_change_in_place_of_an_intermediate_value_costs_no_launch():
    def program(x):
        y = x * 2
        y.add_(1)
        y[:, 0].zero_()
        return torch.relu(y)

    x = torch.randn(4, 4)
    torch.testing.assert_close(lower(fx.symbolic_trace(program), (x,), ToyTarget())(x), program(x))

    def plain(x):
        y = x * 2
        y.add_(1)
        return torch.relu(y)

    lowered = lower(fx.symbolic_trace(plain), (x,), ToyTarget())
    torch.testing.assert_close(lowered(x), plain(x))
    assert lowered.after.launches == 1


def test_what_lower_gives_can_be_read():
    gm, inputs = chained(8, 8)
    lowered = lower(gm, inputs, ToyTarget(Machine(4)))
    shown = str(report(lowered))
    assert repr(lowered).startswith("toy machine, 4 registers: 1 of 1 parts kept, 3 launches became 1")
    assert "add, relu, mul" in shown
    assert "2 registers, 0 spills" in shown
    assert "kernel over [8, 8]" in repr(lowered.parts[0])
    model, (x,) = workload("bert_layer").build()
    assert report(lowered, lowered).names == ("graph_0", "graph_1")
    again = lower(capture(model, (x,), mode="make_fx").graph_module, (x,), ToyTarget())
    assert again.refusals == ()


def test_graphs_that_differ_in_a_number_share_nothing():
    cache, target, x = CompileCache(), ToyTarget(), torch.randn(4, 4)
    for factor in (2, 3, 2.0, True):
        gm = fx.symbolic_trace(lambda x, factor=factor: torch.relu(x * factor + 1), concrete_args={"factor": factor})
        torch.testing.assert_close(lower(gm, (x,), target, cache=cache)(x), torch.relu(x * factor + 1))
    assert len(cache) == 4


def test_equal_parts_are_compiled_once():
    layers = nn.Sequential(*(TransformerLayer(TransformerConfig(16, 2, 32, norm_first=True)) for _ in range(2))).eval()
    x = torch.randn(2, 4, 16)
    cache = CompileCache()
    gm = torch.export.export(layers, (x,)).module()
    first = lower(gm, (x,), ToyTarget(), cache=cache)
    missed = cache.misses
    target = first.parts[0].compiled.machine
    assert target.counts.launches == 0  # compiling runs nothing
    model, (images,) = workload("residual_network").build()
    lowered = lower(torch.export.export(model, (images,)).module(), (images,), ToyTarget(), cache=cache)
    assert [part.found_in_cache for part in lowered.parts] == [False, True, False, False, False]
    assert (cache.hits, cache.misses) == (1, missed + 4)
    lowered(images)
    assert cache.misses == missed + 4
    cache.clear()
    assert (len(cache), cache.hits, cache.misses) == (0, 0, 0)


def test_two_machines_share_no_program():
    cache = CompileCache()
    gm, inputs = chained(8, 8)
    for machine in (Machine(4), Machine(8)):
        lower(gm, inputs, ToyTarget(machine), cache=cache)(*inputs)
        assert machine.counts.launches == 1


def test_inputs_of_another_kind_are_compiled_again():
    gm, (x, y) = chained(8, 8)
    cache = CompileCache()
    lowered = lower(gm, (x, y), ToyTarget(), cache=cache)
    for given in ((x, y), (x[:3], y[:3]), (x.t(), y), (x.double(), y.double()), (x[:3], y[:3])):
        torch.testing.assert_close(lowered(*given), chain(*given))
    assert (cache.hits, cache.misses) == (2, 4)


def test_a_part_that_is_too_small_is_left_with_its_price():
    gm = fx.symbolic_trace(lambda x: torch.exp(x))
    lowered = lower(gm, (torch.ones(4),), ToyTarget())
    assert lowered.parts[0].compiled == Objection("too small", "eager takes 5.0 µs for the part and the target 7.0 µs")
    assert not lowered.graph_module.graph.find_nodes(op="call_module")
    gm, inputs = chained(1024, 1024)
    assert lower(gm, inputs, ToyTarget(), prices=Prices(launch_us=0)).parts[0].kept  # it saves memory traffic
    assert not lower(gm, inputs, ToyTarget(), prices=Prices(handover_us=1e6)).parts[0].kept


def test_a_graph_that_would_come_out_slower_is_left_as_it_came():
    gm = fx.symbolic_trace(lambda x: torch.nn.functional.gelu(x) + 1)
    lowered = lower(gm, (torch.randn(10),), _Sampler())  # takes the products of gelu, and nothing between them
    assert lowered.graph_module is gm
    assert lowered.before == lowered.after
    assert {part.compiled.rule for part in lowered.parts} == {"too small", "no gain"}


class _Computed(Executable):
    """Has PyTorch compute a part, and says that this is one launch."""

    launches = 1

    def __init__(self, part: fx.GraphModule) -> None:
        self.part = part

    def __call__(self, *inputs):
        return self.part(*inputs)


class _Sampler(Target):
    """A target of one's own in a few lines: takes products and has them computed by PyTorch."""

    name = "sampler"

    def objection(self, node):
        known = node.op == "call_function" and str(node.target).startswith("aten.mul")
        return None if known else Objection("operator", f"{node.target} is no product")

    def compile(self, part):
        if part.graph.output_node().args[0][0].meta["val"].numel() > 100:
            return Objection("size", "more than 100 elements")
        return _Computed(part)


def test_a_target_of_ones_own_may_refuse_sizes_when_it_compiles():
    gm = fx.symbolic_trace(lambda x, y: x * y * x + y)
    x = torch.randn(5, 5)
    lowered = lower(gm, (x, x), _Sampler())
    assert lowered.parts[0].compiled.launches == 1
    large = torch.randn(50, 50)
    torch.testing.assert_close(lowered(large, large), gm(large, large))  # by eager PyTorch
    assert lower(gm, (large, large), _Sampler()).parts[0].compiled.rule == "size"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda gm, x: lower(chain, (x, x), ToyTarget()), "takes a torch.fx.GraphModule and got function"),
        (lambda gm, x: lower(gm, (x, x), "toy"), "takes a Target, such as ToyTarget"),
        (lambda gm, x: lower(gm, (x, torch.ones(7)), ToyTarget()), "cannot run on these example inputs"),
        (lambda gm, x: lower(gm, (x,), ToyTarget()), "cannot run on these example inputs"),
        (lambda gm, x: Prices(launch_us=-1), "launch_us=-1"),
        (lambda gm, x: Prices(bandwidth_gb_s=0), "nothing would ever arrive"),
        (lambda gm, x: Backend("toy"), "takes a Target"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(call, sentence):
    gm, (x, _) = chained(4, 4)
    with pytest.raises(BackendError, match=sentence):
        call(gm, x)
